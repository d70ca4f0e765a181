"""Which CUDA the packages of an environment are built for, and which driver that needs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("cuda_drivers.toml")
# Frameworks in the order in which sentences name one.
_FRAMEWORKS = ("torch", "tensorflow", "jax", "onnxruntime-gpu", "paddlepaddle-gpu")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?\Z")
_LOCAL_CUDA = re.compile(r"\+cu(\d{2})(\d)\b")
_CPU_DISTRIBUTIONS = {"tensorflow-cpu": "tensorflow"}


@dataclass(frozen=True)
class CudaBuild:
    """`package`: the framework that is built for CUDA `version` ("13.0"), with its own version."""

    package: str
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


def cuda_build(versions: Mapping[str, str]) -> CudaBuild | None:
    """Returns the newest CUDA among the packages (normalised name -> version), None if there is none."""
    runtimes = [
        re.match(r"(\d+)\.(\d+)", version) for name, version in versions.items() if _RUNTIME.match(name)
    ]
    local = [_LOCAL_CUDA.search(version) for version in versions.values()]
    cuda = [(int(match[1]), int(match[2])) for match in (*runtimes, *local) if match]
    if not cuda:
        return None
    frameworks = (name for name in _FRAMEWORKS if name in versions and "+cpu" not in versions[name])
    framework = next(frameworks, "")
    package = f"{framework} {versions[framework]}" if framework else "the environment"
    return CudaBuild(package, ".".join(map(str, max(cuda))))


def cpu_build(versions: Mapping[str, str], module: str) -> str:
    """Returns the distribution that provides torch or tensorflow, with its version, if it is a build for CPUs
    alone; else ""."""
    if module == "torch" and re.search(r"\+cpu\b", versions.get("torch", "")):
        return f"torch {versions['torch']}"
    for distribution, provided in _CPU_DISTRIBUTIONS.items():
        if provided == module and distribution in versions and module not in versions:
            return f"{distribution} {versions[distribution]}"
    return ""


@cache
def _drivers() -> dict[int, str]:
    return {int(major): driver for major, driver in tomllib.loads(FILE.read_text())["drivers"].items()}


def required_driver(major: int) -> str:
    """Returns the oldest driver for the major version of CUDA, "" if it is not known."""
    return _drivers().get(major, "")


def newest_cuda(driver: str) -> int | None:
    """Returns the newest major version of CUDA that the driver runs, None if it is not known."""
    majors = [major for major, least in _drivers().items() if not is_older(driver, least)]
    return max(majors, default=None)


def is_older(driver: str, least: str) -> bool:
    """Returns whether the driver is certainly older than `least`."""
    numbers, limit = _numbers(driver), _numbers(least)
    return bool(numbers and limit) and numbers[: len(limit)] < limit


def _numbers(driver: str) -> tuple[int, ...]:
    match = re.match(r"\d{3,4}(?:\.\d+)*", driver)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
