"""The package that nodes install, built from the hub's own sources, so that both have the same version."""

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
BUILD_TIMEOUT_S = 120
# Delay after the start of the web server, which is busy at first.
BUILD_AFTER_SECONDS = 60.0
_build_lock = threading.Lock()


def node_wheel() -> Path | None:
    """Returns the wheel, which is built on first use, or None if it cannot be built (the log says why)."""
    # Held during the build: a second caller waits for the package instead of building it again.
    with _build_lock:
        folder = Path(settings.NODE_WHEELS) / sources_digest()
        return _built_wheel(folder) or (_build(folder) if BUILDER.exists() else None)


@contextmanager
def build_after_start(after_seconds: float = BUILD_AFTER_SECONDS) -> Iterator[None]:
    """Lifespan hook of the web server that builds the package in the background, so that the first invitation
    does not wait for it."""
    timer = threading.Timer(after_seconds, node_wheel)
    timer.name, timer.daemon = "node-wheel", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources_digest() -> str:
    """Returns a digest of the sources, so that an upgraded hub does not provide an older package."""
    content = hashlib.sha256()
    files = (path for name in SOURCES for path in Path(settings.BASE_DIR, name).rglob("*") if path.is_file())
    # Compiled files appear while the hub runs, and would change the digest.
    for file in sorted(file for file in files if file.suffix != ".pyc"):
        content.update(f"{file.relative_to(settings.BASE_DIR)}\0".encode() + file.read_bytes())
    return content.hexdigest()[:16]


def _built_wheel(folder: Path) -> Path | None:
    return next(folder.glob(PATTERN), None)


def _build(folder: Path) -> Path | None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        result = subprocess.run(
            [sys.executable, str(BUILDER), str(folder)],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        log.exception("The package for nodes was not built within %d s", BUILD_TIMEOUT_S)
        return None
    if result.returncode:
        log.error("The package for nodes could not be built:\n%s", result.stderr)
        return None
    _discard_others(folder)
    return _built_wheel(folder)


def _discard_others(folder: Path) -> None:
    """Deletes packages of other sources, which upgrades leave behind."""
    for other in folder.parent.iterdir():
        if other == folder:
            continue
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)
        else:
            other.unlink(missing_ok=True)
