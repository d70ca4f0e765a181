"""How a container gets exactly the GPUs of its run: by CDI, a file in which the machine describes its
devices, or by Docker's older option `--gpus`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CDI_KIND = "nvidia.com/gpu"
CDI_ENDINGS = (".json", ".yaml", ".yml")
MAX_SPECIFICATION_BYTES = 16 * 1024 * 1024


def gpu_options(gpus: Sequence[str], *, by_cdi: bool) -> list[str]:
    """Returns the options that give a container these GPUs, by their UUIDs, and no other."""
    if gpus and not by_cdi:
        # The value is a line of CSV: the quotation marks are part of it and keep the UUIDs together.
        return [f'--gpus="device={",".join(gpus)}"']
    # NVIDIA's older way would give a container what its image asks for, if the engine uses it by default.
    return ["--env=NVIDIA_VISIBLE_DEVICES=void", *(f"--device={CDI_KIND}={gpu}" for gpu in gpus)]


def docker_has_cdi(info: object, gpus: Sequence[str]) -> bool:
    """Returns whether a Docker that says this about itself can give a container these GPUs by CDI. Since
    version 28.2 it lists the devices; before, and since 25, it tells where their files are if CDI is on."""
    if not isinstance(info, dict):
        return False
    devices = info.get("DiscoveredDevices") or ()
    names = {device["ID"] for device in devices if device.get("Source") == "cdi"}
    if names:
        return names.issuperset(f"{CDI_KIND}={gpu}" for gpu in gpus)
    texts = [text for folder in info.get("CDISpecDirs") or () for text in _specifications(folder)]
    return all(any(gpu.encode() in text for text in texts) for gpu in gpus)


def _specifications(folder: str) -> list[bytes]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(CDI_ENDINGS))
    except FileNotFoundError:
        return []
    texts = []
    for name in names:
        with open(f"{folder}/{name}", "rb") as file:
            texts.append(file.read(MAX_SPECIFICATION_BYTES))
    return [text for text in texts if CDI_KIND.encode() in text]
