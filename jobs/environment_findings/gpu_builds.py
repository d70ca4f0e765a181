"""Builds for CUDA that a driver is too old for, and builds without CUDA for a run with GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from environments.contents.cuda_builds import cpu_build, cuda_build, is_older, newest_cuda, required_driver
from environments.contents.package_set import PackageSet
from environments.imports.scan_process import SourceImports
from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.capacity import words
from trainhub_launch.spec import RunSpec

FIELD = "environment.name"
_FRAMEWORKS = ("torch", "tensorflow")


def gpu_build_findings(
    spec: RunSpec, packages: PackageSet, imports: SourceImports | None, drivers: Mapping[str, str]
) -> Iterator[Finding]:
    """`drivers`: the driver of each node that the run would get, by its name; "" = unknown."""
    if not spec.resources.gpus_per_node:
        return
    build = cuda_build(packages.versions)
    if build is None:
        yield from _cpu_builds(packages, imports)
        return
    least = required_driver(build.major)
    old = [name for name, driver in drivers.items() if least and is_older(driver, least)]
    if not old:
        return
    newest = newest_cuda(drivers[old[0]])
    instead = f"a build for CUDA {newest} or older" if newest else "a build for CPUs"
    versions = words([f"{name} has {drivers[name]}" for name in old])
    yield Finding(
        "warning",
        FIELD,
        f"{build.package} is built for CUDA {build.version}, which needs NVIDIA's driver {least} or newer, "
        f"and {versions}; choose an environment with {instead}, or have the driver updated",
    )


def _cpu_builds(packages: PackageSet, imports: SourceImports | None) -> Iterator[Finding]:
    for module in _FRAMEWORKS:
        build = cpu_build(packages.versions, module)
        if build and imports is not None and imports.imports(module):
            yield Finding(
                "warning",
                FIELD,
                f"{build} is a build for CPUs, so the GPUs of the run would not be used; choose an "
                "environment with a build for CUDA, or ask for no GPU",
            )
