"""The folder that holds the backups of a hub: its lock, its backups, and their blobs."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainhub.backup import file_index, manifest
from trainhub.backup.data_folder import data_dir
from trainhub.backup.errors import BackupError
from trainhub.backup.file_copy import hash_file, make_folder
from trainhub.backup.file_index import IndexedFile, read_index
from trainhub.backup.manifest import BackupManifest, read_manifest
from workspaces.stored_files.blobs import SHA256

LOCK = "backup.lock"
UNFINISHED = ".unfinished"
NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z\Z")
_TIME = "%Y-%m-%dT%H%M%SZ"


@dataclass(frozen=True)
class StoredBackup:
    """A complete backup in its folder."""

    folder: Path
    manifest: BackupManifest

    def path(self, file: IndexedFile) -> Path:
        return (self.folder.parent if file.is_blob else self.folder) / file.path


def backup_names(folder: Path) -> list[str]:
    """Returns the names of the complete backups in `folder`, the oldest first."""
    return sorted(
        path.name for path in folder.iterdir() if NAME.match(path.name) and (path / manifest.NAME).exists()
    )


def start_time(name: str) -> datetime:
    """Returns when the backup of that name was begun."""
    return datetime.strptime(name, _TIME).replace(tzinfo=UTC)


def open_backup(folder: Path) -> StoredBackup:
    """Returns the backup in `folder`: it, or the newest one in it. Raises BackupError if none is complete."""
    try:
        if (folder / manifest.NAME).exists():
            return StoredBackup(folder, read_manifest(folder))
        if names := backup_names(folder):
            return StoredBackup(folder / names[-1], read_manifest(folder / names[-1]))
        is_incomplete = NAME.match(folder.name.removesuffix(UNFINISHED)) or unfinished(folder)
    except OSError as error:
        raise BackupError(f"{folder} cannot be read: {error.strerror}.") from error
    if is_incomplete:
        raise BackupError(
            f"The backup in {folder} is incomplete: it was interrupted, or is not finished yet. Use another "
            "one."
        )
    raise BackupError(f"{folder} holds no backup. Name the folder that `manage.py backup` was given.")


def check_index(backup: StoredBackup) -> None:
    """Raises BackupError if the list of files is not the one of which the manifest speaks."""
    path = backup.folder / file_index.NAME
    try:
        is_whole = hash_file(path).sha256 == backup.manifest.files.sha256
    except OSError:
        is_whole = False
    if not is_whole:
        raise BackupError(
            f"{path}, the list of the backup's files, is missing or damaged. Use another backup, and remove "
            "this one."
        )


def unfinished(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{UNFINISHED}") if path.is_dir())


def check_apart(folder: Path, other: Path, what: str) -> None:
    """Raises BackupError if one of two folders lies in the other."""
    first, second = folder.resolve(), other.resolve()
    if first == second or first in second.parents or second in first.parents:
        raise BackupError(f"{folder} and {what} {other} lie in each other. Name a folder elsewhere.")


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Makes the folder if it is missing, and holds its lock. Raises BackupError if it cannot hold backups of
    this hub, or another backup is written there."""
    check_apart(folder, data_dir(), "the data folder")
    make_folder(folder)
    if not (folder / LOCK).exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} has other files in it. Name a new or empty folder for the backups.")
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BackupError(
                f"Another backup is being written to {folder}. Wait for its end, or name another folder."
            ) from error
        yield
    finally:
        os.close(descriptor)


def begin_backup(folder: Path) -> Path:
    """Removes what interrupted backups have left, and makes the folder of a new one. Needs the lock."""
    for path in unfinished(folder):
        shutil.rmtree(path)
    # A small hub is backed up in less than a second.
    while (folder / (name := datetime.now(UTC).strftime(_TIME))).exists():
        time.sleep(0.1)
    started = folder / (name + UNFINISHED)
    started.mkdir(mode=0o700)
    return started


def remove_old(folder: Path, keep: int) -> int:
    """Removes all but the newest `keep` backups, and the blobs that only they have. Returns how many backups.
    Needs the lock."""
    names = backup_names(folder)
    old, rest = names[:-keep], names[-keep:]
    for name in rest if old else ():
        # A list that lacks lines would let blobs go that are needed.
        check_index(open_backup(folder / name))
    for name in old:
        # Under this name it does not count any more, and the next backup removes what is left of it.
        shutil.rmtree((folder / name).rename(folder / (name + UNFINISHED)))
    if old:
        _remove_blobs(folder, _blob_hashes(folder, rest))
    return len(old)


def _blob_hashes(folder: Path, names: list[str]) -> set[bytes]:
    return {
        bytes.fromhex(file.sha256) for name in names for file in read_index(folder / name) if file.is_blob
    }


def _remove_blobs(folder: Path, needed: set[bytes]) -> None:
    for file in (folder / "blobs").glob("*/*"):
        if not SHA256.match(file.name) or bytes.fromhex(file.name) not in needed:
            file.unlink()
