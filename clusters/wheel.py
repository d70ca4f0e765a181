"""The package that other machines install: built from this very hub's sources, so that both speak the same."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
import threading
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)
BUILDER = Path(settings.BASE_DIR) / "packaging" / "build_wheel.py"
PATTERN = "trainhub_node-*-py3-none-any.whl"
LONGEST_BUILD_S = 120
_building = threading.Lock()


def wheel() -> Path | None:
    """The file, made on first use; None where it cannot be made (the log says why)."""
    folder = Path(settings.NODE_WHEELS)
    with _building:
        return _newest(folder) or (_build(folder) if BUILDER.exists() else None)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _newest(folder: Path) -> Path | None:
    found = sorted(folder.glob(PATTERN), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def _build(folder: Path) -> Path | None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            [sys.executable, str(BUILDER), str(folder)], cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LONGEST_BUILD_S, check=False,
        )
    except subprocess.TimeoutExpired:
        log.exception("The package for nodes was not built within %d s", LONGEST_BUILD_S)
        return None
    if done.returncode:
        log.error("The package for nodes could not be built:\n%s", done.stderr)
    return _newest(folder)
