"""Compiles the library when its sources have changed, once for everybody on this machine."""

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
    "-fvisibility=hidden",
    "-Wl,-soname,libnvidia-ml.so.1",
)
NAME = "libnvidia-ml.so.1"
CACHE = Path(os.environ.get("TRAINHUB_TEST_CACHE") or Path.home() / ".cache" / "trainhub-tests").expanduser()


class NoCompiler(Exception):
    """The library cannot be built here; the message is the sentence for the person who wants it."""


def library(folder: Path | None = None) -> Path:
    """The folder that holds `libnvidia-ml.so.1`, built anew only where the sources have changed."""
    home = (folder or CACHE / "simulator") / _fingerprint()
    if not (home / NAME).exists():
        _compile(_compiler(), home)
    return home


def _fingerprint() -> str:
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
        # Several may build at once: each puts a whole library in its place.
        made.replace(home / NAME)
