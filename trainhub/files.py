"""Writes files that only this account may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_secret(path: Path, text: str) -> None:
    """Writes `text` to `path`, readable by this account only. The file is replaced as a whole or not at
    all."""
    # In the same folder, so that the rename is atomic; with the process id, so that two processes do not
    # share it.
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    aside.replace(path)
