"""What a build from source finds: programs of the node, variables, and a C++ compiler that adds flags."""

from __future__ import annotations

import os
import shlex
import shutil

from trainhub_node.supervisor import variables as base_variables
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainhub_node.environments.build_process import BuildProcess

COMPILER = "c++"
# A unit of PyTorch's or TensorFlow's headers needs about this.
BYTES_PER_JOB = 2 * 2**30
CUDA_TOOLKIT = "/usr/local/cuda"
# A file of every CUDA toolkit that something can be built with.
CUDA_HEADER = "include/cuda_runtime.h"


def check_programs(package: Mapping[str, Any]) -> None:
    """Raises PreparationFailed if this node lacks programs that the build needs."""
    missing = [(name, debian) for name, debian in package["programs"] if _which(name) is None]
    if missing:
        names = ", ".join(name for name, _ in missing)
        packages = " ".join(dict.fromkeys(debian for _, debian in missing))
        raise PreparationFailed(
            "environment",
            f"{package['name']} cannot be built on this node without {names}. Install it there (Debian: "
            f"apt-get install {packages}), or build on another node.",
        )


def build_variables(package: Mapping[str, Any], environment: str, work: str) -> dict[str, str]:
    """Returns the variables of the build of one package."""
    toolkit, flags = cuda_toolkit(), f"-j{_jobs()}"
    # CMake takes the folder above that of the first nvcc for the toolkit; PyTorch reads the variable.
    programs = f"{environment}/bin:{toolkit}/bin" if toolkit else f"{environment}/bin"
    result = {
        "PATH": f"{programs}:{_path()}",
        "MAKEFLAGS": flags,
        "CMAKE_BUILD_PARALLEL_LEVEL": flags[2:],
        **uv_variables(work),
    }
    if package["compiler_flags"]:
        result["CXX"] = compiler_path(work, package)
    if toolkit:
        result["CUDA_HOME"] = toolkit
    return result | dict(package["variables"])


def cuda_toolkit() -> str:
    """Returns the folder of this node's CUDA toolkit, "" without a whole one. PyTorch takes the folder above
    that of `nvcc` for it, but there is nothing else where `nvcc` is only a script that calls the real one."""
    nvcc = _which("nvcc")
    homes = [os.path.dirname(os.path.dirname(nvcc))] if nvcc else []
    return next((home for home in (*homes, CUDA_TOOLKIT) if os.path.exists(f"{home}/{CUDA_HEADER}")), "")


def uv_variables(work: str) -> dict[str, str]:
    return {
        "HOME": f"{work}/home",
        "UV_CACHE_DIR": f"{work}/cache",
        "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
    }


def compiler_path(work: str, package: Mapping[str, Any]) -> str:
    return f"{work}/{package['name']}-{COMPILER}"


def write_compiler(process: BuildProcess, package: Mapping[str, Any]) -> None:
    """Writes the script that calls the C++ compiler of the node with further flags for some arguments. Before
    any process of the builder runs."""
    if not package["compiler_flags"]:
        return
    cases = "".join(_case(patterns, flags) for patterns, flags in package["compiler_flags"])
    compiler = _which("g++") or "g++"
    path = process.write_file(
        f"{package['name']}-{COMPILER}", f'#!/bin/sh\n{cases}exec {shlex.quote(compiler)} "$@"\n'
    )
    os.chmod(path, 0o755)  # noqa: S103 - the builder runs it


def _case(patterns: list[str], flags: list[str]) -> str:
    matching = "|".join(map(_pattern, patterns))
    return f'case "$*" in {matching}) set -- "$@" {" ".join(map(shlex.quote, flags))};; esac\n'


def _pattern(text: str) -> str:
    """Returns a pattern of the shell in which only `*` has a meaning."""
    return "*".join(map(shlex.quote, text.split("*")))


def _which(name: str) -> str | None:
    return shutil.which(name, path=_path())


def _path() -> str:
    return base_variables.base_environment(None)["PATH"]


def _jobs() -> int:
    """Returns how many compilers may run at once."""
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    available = int(lines["MemAvailable"].split()[0]) * 1024
    return max(1, min(len(os.sched_getaffinity(0)), available // BYTES_PER_JOB))
