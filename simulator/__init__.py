"""NVML without a GPU: a small C library that pynvml loads in place of the driver's, driven by a scenario
file.

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
    """Returns the environment variables with which a process sees the GPUs of this scenario file. `folder`:
    where the library is built, by default the cache."""
    # pynvml loads "libnvidia-ml.so.1" by name, and the dynamic loader searches LD_LIBRARY_PATH before the
    # system's folders, so this library wins over that of a driver. The loader reads the variable only when a
    # process starts.
    return {"LD_LIBRARY_PATH": str(library(folder)), "NVML_SIMULATOR": str(scenario)}
