"""The files of this machine that an upload sends."""

from __future__ import annotations

from pathlib import Path

from trainhub_sdk.errors import UploadError

# What operating systems add to folders. The page for uploads leaves it out, too.
SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def local_files(path: str | Path, contents: str = "files") -> dict[str, Path]:
    """Returns a file under its own name, or the files of a folder by their paths in it, without those of the
    operating system. `contents`: what a folder is to hold, for the error. Raises UploadError if there are
    none."""
    root = Path(path)
    if root.is_file():
        return {root.name: root}
    files = sorted(file for file in root.rglob("*") if file.is_file() and file.name not in SYSTEM_FILES)
    if not files:
        what = "is an empty folder" if root.is_dir() else "does not exist"
        raise UploadError(f"{path} {what}: give a file, or a folder with {contents}.")
    return {file.relative_to(root).as_posix(): file for file in files}
