"""The package that other machines install: built from this very hub's sources, so that both speak the
same."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)
BUILDER = Path(settings.BASE_DIR) / "packaging" / "build_wheel.py"
SOURCES = ("packaging", "trainhub_launch", "trainhub_node")
PATTERN = "trainhub_node-*-py3-none-any.whl"
LONGEST_BUILD_S = 120
BUILD_AFTER_SECONDS = 15.0
"""After the web server's start, which has enough to do by then."""
_building = threading.Lock()


def wheel() -> Path | None:
    """The file, made on first use of these sources; None where it cannot be made (the log says why)."""
    with _building:
        folder = Path(settings.NODE_WHEELS) / sources_digest()
        return _made(folder) or (_build(folder) if BUILDER.exists() else None)


@contextmanager
def build_after_start(after_seconds: float = BUILD_AFTER_SECONDS) -> Iterator[None]:
    """In the lifespan of the web server: build the package in the background, so that the first invitation
    need not wait."""
    timer = threading.Timer(after_seconds, wheel)
    timer.name, timer.daemon = "node-wheel", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources_digest() -> str:
    """Names the sources: a hub that was upgraded hands out no package of before."""
    content = hashlib.sha256()
    files = (path for name in SOURCES for path in Path(settings.BASE_DIR, name).rglob("*") if path.is_file())
    for file in sorted(file for file in files if file.suffix != ".pyc"):
        content.update(f"{file.relative_to(settings.BASE_DIR)}\0".encode() + file.read_bytes())
    return content.hexdigest()[:16]


def _made(folder: Path) -> Path | None:
    return next(folder.glob(PATTERN), None)


def _build(folder: Path) -> Path | None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            [sys.executable, str(BUILDER), str(folder)],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        log.exception("The package for nodes was not built within %d s", LONGEST_BUILD_S)
        return None
    if done.returncode:
        log.error("The package for nodes could not be built:\n%s", done.stderr)
        return None
    _discard_others(folder)
    return _made(folder)


def _discard_others(folder: Path) -> None:
    """Packages of other sources: this hub hands out none of them any more, and every upgrade leaves one
    behind."""
    for other in folder.parent.iterdir():
        if other == folder:
            continue
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)
        else:
            other.unlink(missing_ok=True)
