"""Reads the metadata of a stored wheel (PEP 658)."""

from __future__ import annotations

import zipfile

from workspaces.stored_files import blob_cache

MAX_BYTES = 4 * 2**20
SUFFIX = ".dist-info/METADATA"


def read_metadata(sha256: str) -> bytes | None:
    """Returns the metadata, or None if the wheel has none that can be read."""
    try:
        with zipfile.ZipFile(blob_cache.local_path(sha256)) as archive:
            entries = (item for item in archive.infolist() if _is_metadata(item.filename))
            entry = next(entries, None)
            if entry is None or entry.file_size > MAX_BYTES:
                return None
            return archive.read(entry)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None


def _is_metadata(name: str) -> bool:
    return name.endswith(SUFFIX) and name.count("/") == 1
