"""Simulated machines for tests: worlds to start from, and a Python that lives in one.

scenario = eight_h100()
path = scenario.write(tmp_path / "scenario")
process_env = {**os.environ, **environment(path)}
scenario.gpus[2].removed = True
scenario.write(path)    # and the process sees it
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from simulator import Scenario, SimGpu, environment
from simulator.models import a100, h100, in_mig_mode

PRELUDE = """\
import json, sys, time
import pynvml as nvml
def tell(**values): print(json.dumps(values, default=str), flush=True)
def wait(): return sys.stdin.readline()
def attempt(call, *given):
    try: return call(*given)
    except nvml.NVMLError as error: return f"error {error.value}"
def first():
    nvml.nvmlInit()
    return nvml.nvmlDeviceGetHandleByIndex(0)
"""


def eight_h100(name: str = "node") -> Scenario:
    return Scenario([h100(f"{name} gpu {index}") for index in range(8)])


def one_gpu(name: str = "node", **changes: Any) -> Scenario:
    """One H100; `changes`: fields of SimGpu, `values` are merged in."""
    return Scenario([h100(f"{name} gpu 0", **changes)])


def two_a100(name: str = "node") -> Scenario:
    return Scenario([a100(f"{name} gpu {index}") for index in range(2)])


def split_h100(name: str = "node", parts: int = 2) -> Scenario:
    """One H100 in MIG mode and one whole."""
    return Scenario([in_mig_mode(h100(f"{name} gpu 0"), parts), h100(f"{name} gpu 1")])


def busy(gpu: SimGpu, **values: float) -> SimGpu:
    """The same GPU with these numbers."""
    gpu.values |= values
    return gpu


class Inhabitant:
    """A Python with the real pynvml that sees a scenario. What its code tells with `tell(name=value)` comes
    out of `heard()`; `wait()` in the code lasts until `go_on()`."""

    def __init__(self, scenario: Path, code: str, **env: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment(scenario), **env},
        )

    def heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()}"
        return dict(json.loads(line))

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self) -> Inhabitant:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def ask(scenario: Path, code: str, **env: str) -> dict[str, Any]:
    """What such a Python tells first."""
    with Inhabitant(scenario, code, **env) as one:
        return one.heard()
