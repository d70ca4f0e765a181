"""Files that are whole after a power cut."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


def write_durably(file: Path, text: str) -> None:
    """Replaces the file by a private one with this text; a power cut leaves the old or the new one. Raises
    OSError."""
    aside = file.with_name(f".{file.name}.new")
    aside.unlink(missing_ok=True)
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    aside.rename(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Writes the names in the folder to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: str) -> None:
    """Writes everything on the file system of the folder to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(descriptor)
