"""Verifies a backup: every file is there, with its size and SHA-256."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trainhub.backup.backup_folder import StoredBackup, check_index
from trainhub.backup.errors import BackupError
from trainhub.backup.file_copy import hash_file
from trainhub.backup.file_index import IndexedFile, read_index

MAX_NAMED = 20


class DamagedFile(NamedTuple):
    path: Path
    what: str


def check_backup(backup: StoredBackup) -> None:
    """Reads every file of the backup. Raises BackupError with the names of those that are missing or
    damaged."""
    check_index(backup)
    damaged = list(damaged_files(backup))
    if damaged:
        names = "".join(f"\n  {item.path}: {item.what}" for item in damaged[:MAX_NAMED])
        rest = f"\n  and {len(damaged) - MAX_NAMED} more" if len(damaged) > MAX_NAMED else ""
        raise BackupError(
            f"{len(damaged)} of {backup.manifest.files.count} files of the backup {backup.folder} cannot be "
            "used. If the hub still works, remove them and back up again; else use another backup, or put "
            f"intact copies in their places:{names}{rest}"
        )


def stored_files(backup: StoredBackup) -> Iterator[IndexedFile]:
    """Yields every file that is in the backup, not only listed."""
    for file in read_index(backup.folder):
        if backup.manifest.has_blobs or not file.is_blob:
            yield file


def damaged_files(backup: StoredBackup) -> Iterator[DamagedFile]:
    for file in stored_files(backup):
        path = backup.path(file)
        try:
            facts = hash_file(path)
        except FileNotFoundError:
            yield DamagedFile(path, "is missing")
            continue
        except OSError as error:
            yield DamagedFile(path, f"cannot be read ({error.strerror})")
            continue
        if facts.size != file.size:
            yield DamagedFile(path, f"has {facts.size} bytes instead of {file.size}")
        elif facts.sha256 != file.sha256:
            yield DamagedFile(path, "has another content (SHA-256)")
