"""NVML without a GPU: a small C library that the real pynvml finds and believes, driven by a scenario file.

For tests and the demo; neither the hub nor a node imports it.
"""

from __future__ import annotations

from pathlib import Path

from simulator.build import NoCompiler, library
from simulator.curves import Constant, Curve, Noise, Ramp, Sine, Steps, WhileHeld
from simulator.scenario import Event, Process, Scenario, SimGpu, SimMig, xid

__all__ = [
    "Constant",
    "Curve",
    "Event",
    "NoCompiler",
    "Noise",
    "Process",
    "Ramp",
    "Scenario",
    "SimGpu",
    "SimMig",
    "Sine",
    "Steps",
    "WhileHeld",
    "environment",
    "library",
    "xid",
]


def environment(scenario: Path, folder: Path | None = None) -> dict[str, str]:
    """For a process that is to see the GPUs of this scenario file. `folder`: where the library is built, else
    the cache."""
    return {"LD_LIBRARY_PATH": str(library(folder)), "NVML_SIMULATOR": str(scenario)}
