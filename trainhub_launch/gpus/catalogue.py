"""Models of GPUs that are used for training, from the slowest to the fastest.

Memory and peak throughput are those of NVIDIA's data sheets: dense 16-bit matrix products with 32-bit sums,
in TFLOP/s (models before tensor cores: the best of their 16- and 32-bit rates). They rank models and do not
predict the speed of a training."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class GpuModel:
    """One GPU model. `pattern` is a regular expression that finds it in the name that NVML reports.
    `peak_tflops`: see the module. `nvlink`: it has links to its peers. `azure`: the series of virtual
    machines in which Azure offers it."""

    name: str
    pattern: str
    memory_gib: int
    peak_tflops: float
    nvlink: bool = False
    azure: str = ""


CATALOGUE = (
    GpuModel("K80", r"K80", 12, 4.4, azure="NC"),
    GpuModel("P40", r"P40", 24, 12, azure="ND"),
    GpuModel("P100", r"P100", 16, 21, nvlink=True, azure="NCv2"),
    GpuModel("T4", r"T4", 16, 65, azure="NCasT4_v3"),
    GpuModel("RTX 3090", r"RTX 3090", 24, 71, nvlink=True),
    GpuModel("L4", r"L4", 24, 121),
    GpuModel("V100", r"V100", 16, 125, nvlink=True, azure="NCv3"),
    GpuModel("A10", r"A10G?", 24, 125, azure="NVadsA10_v5"),
    GpuModel("A40", r"A40", 48, 150, nvlink=True),
    GpuModel("RTX A6000", r"RTX A6000", 48, 155, nvlink=True),
    GpuModel("A30", r"A30", 24, 165, nvlink=True),
    GpuModel("RTX 4090", r"RTX 4090", 24, 165),
    GpuModel("L40", r"L40", 48, 181),
    GpuModel("RTX 5090", r"RTX 5090", 32, 210),
    # A800 and H800 are variants of A100 and H100 for export. GH200, GB200 and GB300 carry the GPU of the name
    # without G.
    GpuModel("A100", r"A[18]00", 40, 312, nvlink=True, azure="NCads_A100_v4"),
    GpuModel("L40S", r"L40S", 48, 362),
    GpuModel("H100 PCIe", r"H100 PCIe", 80, 756, nvlink=True),
    GpuModel("H100 NVL", r"H100 NVL", 94, 835, nvlink=True, azure="NCads_H100_v5"),
    GpuModel("H100", r"H[18]00", 80, 989, nvlink=True, azure="ND_H100_v5"),
    GpuModel("H200", r"(?:G?H200)", 141, 989, nvlink=True, azure="ND_H200_v5"),
    GpuModel("B200", r"G?B200", 180, 2250, nvlink=True),
    GpuModel("B300", r"G?B300", 288, 2250, nvlink=True),
)


def model_of(name: str) -> GpuModel | None:
    """Returns the model of a device by its name, such as "NVIDIA H100 80GB HBM3"; None for a MIG device or an
    unknown one."""
    if "MIG" in name:
        # A MIG device is only a part of its GPU, so the peak of the whole model would be wrong.
        return None
    matches = [model for model in CATALOGUE if re.search(rf"\b{model.pattern}\b", name, re.IGNORECASE)]
    # "H100 PCIe" matches the pattern of H100, too. The longest pattern is the most specific one.
    return max(matches, key=lambda model: len(model.pattern), default=None)


def order(name: str) -> float:
    """Returns a key that sorts devices by speed: TFLOP/s of the model, 0 for an unknown one."""
    model = model_of(name)
    return model.peak_tflops if model else 0.0
