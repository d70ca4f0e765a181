"""Compiles the library when its sources have changed, once for all processes that share the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
COMPILERS = ("cc", "gcc", "clang")
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-Wall",
    "-Wextra",
    "-fPIC",
    "-shared",
    # Only the marked nvml… functions are exported: helpers must not clash with names of the process that
    # loads it.
    "-fvisibility=hidden",
    "-Wl,-soname,libnvidia-ml.so.1",
)
# The file name that pynvml passes to the dynamic loader.
NAME = "libnvidia-ml.so.1"
CACHE = Path(os.environ.get("TRAINHUB_TEST_CACHE") or Path.home() / ".cache" / "trainhub-tests").expanduser()


class NoCompiler(Exception):
    """The library cannot be built here; the message is the sentence for the person who wants it."""


def library(folder: Path | None = None) -> Path:
    """Returns the folder that holds `libnvidia-ml.so.1`. It is compiled only if the sources have changed.
    Raises NoCompiler."""
    home = (folder or CACHE / "simulator") / _fingerprint()
    if not (home / NAME).exists():
        _compile(_compiler(), home)
    return home


def _fingerprint() -> str:
    # The folder's name depends on sources and flags, not on times: a checkout touches files without changing
    # them, and two checkouts with different sources may share the cache.
    text = repr(FLAGS).encode() + b"".join(path.read_bytes() for path in _inputs())
    return hashlib.sha256(text).hexdigest()[:16]


def _inputs() -> list[Path]:
    return [*sorted(SOURCES.glob("*.h")), *sorted(SOURCES.glob("*.c"))]


def _compiler() -> str:
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if found is None:
        raise NoCompiler(
            "Simulated GPUs need a C compiler, and none of cc, gcc and clang is here. Install one, for "
            "example gcc."
        )
    return found


def _compile(compiler: str, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".build-") as scratch:
        made = Path(scratch) / NAME
        sources = [str(path) for path in _inputs() if path.suffix == ".c"]
        argv = [compiler, *FLAGS, "-o", str(made), *sources, "-lm", "-lpthread"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoCompiler(f"Simulated GPUs could not be compiled with {compiler}: {done.stderr.strip()}")
        home.mkdir(exist_ok=True)
        # Several processes may build at once. Each renames a complete library into place, on the same file
        # system, so none of them loads a half-written one.
        made.replace(home / NAME)
