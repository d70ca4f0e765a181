"""Runs a program with limited time, memory and output, apart from everything else of the hub."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class ProcessLimits:
    """`wall_s`: it is killed then, with all that it started; `file_bytes`: of each file that it writes."""

    wall_s: float
    cpu_s: int
    memory_bytes: int
    file_bytes: int


def run_limited(
    argv: Sequence[str], environ: Mapping[str, str], output: Path, limits: ProcessLimits
) -> int | None:
    """Runs the program, its output in the file `output`. Returns its exit code, None if it was killed after
    its time. Raises OSError if it cannot be started."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            limited_command(argv, limits),
            cwd=settings.BASE_DIR,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            return process.wait(limits.wall_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def limited_command(argv: Sequence[str], limits: ProcessLimits) -> list[str]:
    """Returns the command that runs `argv` with limits of its memory, CPU time and files. It must start in
    the project's folder."""
    numbers = (limits.memory_bytes, limits.cpu_s, limits.file_bytes)
    return [sys.executable, "-m", "environments.resolving.limited", *map(str, numbers), *argv]


def read_start(path: Path, size: int) -> str:
    """Returns the first `size` bytes of the file as text."""
    with path.open("rb") as file:
        return file.read(size).decode(errors="replace")
