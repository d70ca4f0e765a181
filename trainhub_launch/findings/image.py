"""Warns of a run with GPUs in a container image that is not made for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.spec import RunSpec

# With one of these, an image says that it is made for GPUs.
GPU_VARIABLES = ("CUDA_VERSION", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_REQUIRE_CUDA")
# Values with which it says the contrary.
_NO_GPUS = ("", "void", "none")


def names_gpus(variables: Iterable[str]) -> bool:
    """Returns whether an image with these variables (NAME=value) says that it is made for GPUs."""
    pairs = (variable.partition("=") for variable in variables)
    return any(name in GPU_VARIABLES and value not in _NO_GPUS for name, _, value in pairs)


def image_findings(spec: RunSpec, environment: EnvironmentSpec) -> Iterator[Finding]:
    """Yields a warning for a run with GPUs in an image that names no CUDA. Only a warning: packages in it may
    bring their own."""
    if not environment.image or not spec.resources.gpus_per_node:
        return
    if names_gpus(environment.image["environment"]):
        return
    *first, last = GPU_VARIABLES
    yield Finding(
        "warning",
        "environment.name",
        f"the image {environment.image['reference']} seems to be for CPUs only: it sets none of "
        f"{', '.join(first)} and {last}, and the run requests GPUs. Take an image with CUDA, such as "
        "nvidia/cuda or pytorch/pytorch with a tag that names cuda, unless the packages in it bring CUDA "
        "themselves",
    )
