"""Restores a backup into an empty hub. Everything is verified before the first byte is written, and once more
while it is copied; the database comes last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.core.management import call_command

from trainhub import __version__, installation
from trainhub.backup import (
    backup_folder,
    data_folder,
    database_copy,
    integrity,
    key_folder,
    object_references,
)
from trainhub.backup.backup_folder import StoredBackup
from trainhub.backup.data_folder import KeyFile, data_dir
from trainhub.backup.errors import BackupError, system_errors
from trainhub.backup.file_collection import FILES
from trainhub.backup.file_copy import copy_file, hash_file, make_folder
from trainhub.backup.file_index import IndexedFile, read_index
from trainhub.up import preflight
from trainhub.up.console import Stop
from workspaces import audit
from workspaces.servers import server_registry
from workspaces.stored_files import blobs

MIB = 2**20


@dataclass(frozen=True)
class Restoration:
    """What was restored. `missing_blobs`: number of listed files that are neither in the backup nor in
    DATA_DIR. `missing_objects`: number of files whose objects are not in the store. `lost_keys`: keys that
    the hub had and that are not in their places."""

    backup: StoredBackup
    missing_blobs: int
    missing_objects: int
    lost_keys: list[KeyFile]
    is_migrated: bool


def restore_backup(folder: Path, keys_folder: Path | None, say: Callable[[str], None]) -> Restoration:
    """Restores the backup in `folder`. Raises BackupError; before anything was written, unless the message
    says otherwise."""
    backup = backup_folder.open_backup(folder)
    _check_version(backup)
    object_references.check_place(backup.manifest)
    with system_errors(data_dir()), _locked_hub():
        _check_empty(backup)
        keys = key_folder.open_keys(keys_folder, backup.manifest.name) if keys_folder is not None else []
        key_folder.check_places(keys)
        say(f"Verifying {backup.manifest.files.count} files of {backup.folder} …")
        integrity.check_backup(backup)
        _check_space(backup)
        say(f"Writing to {data_dir()} and {database_copy.description()} …")
        mark = data_dir() / installation.RESTORE_MARK.name
        mark.write_text(backup.manifest.name)
        missing = _write_files(backup)
        key_folder.place_keys(keys)
        is_migrated = database_copy.own_migrations() != set(backup.manifest.migrations)
        if is_migrated:
            call_command("migrate", interactive=False, verbosity=0)
        # The rows of the old hub, which may have run a moment ago: a start would take them for other servers.
        server_registry.remove_all_processes()
        missing_objects = object_references.adopt_restored_rows(backup.manifest, data_dir())
        audit.record("command line", "hub.restored", backup.manifest.name, version=backup.manifest.version)
        mark.unlink()
    lost_keys = list(key_folder.lost_keys(backup.manifest.keys))
    return Restoration(backup, missing, missing_objects, lost_keys, is_migrated)


def _check_version(backup: StoredBackup) -> None:
    manifest = backup.manifest
    unknown = set(manifest.migrations) - database_copy.own_migrations()
    if _numbers(manifest.version) > _numbers(__version__) or unknown:
        raise BackupError(
            f"TrainHub {manifest.version} made this backup, and this is {__version__}, which is older"
            f"{f' and does not know {len(unknown)} of its migrations' if unknown else ''}. Install that "
            "version or a newer one, and restore with it."
        )
    if manifest.database != database_copy.kind():
        remedy = (
            "Set DATABASE_URL to an empty database of PostgreSQL."
            if manifest.database == "postgresql"
            else "Unset DATABASE_URL."
        )
        raise BackupError(
            f"The backup is of a hub on {manifest.database}, this one is on {database_copy.kind()}. {remedy}"
        )


def _check_empty(backup: StoredBackup) -> None:
    mark = data_dir() / installation.RESTORE_MARK.name
    is_resumed = mark.exists() and mark.read_text() == backup.manifest.name
    if is_resumed and database_copy.kind() == "sqlite":
        return
    if database_copy.tables():
        raise BackupError(
            f"{database_copy.description()} has tables in it. A backup is restored into an empty hub only: "
            "name another DATA_DIR, or another database in DATABASE_URL."
        )
    if is_resumed:
        return
    names = [*data_folder.hub_content(), *(["blobs"] if backup.manifest.has_blobs and _has_blobs() else [])]
    if names:
        raise BackupError(
            f"{data_dir()} holds the files of a hub ({', '.join(names)}). A backup is restored into an empty "
            "hub only: name another DATA_DIR."
        )


def _check_space(backup: StoredBackup) -> None:
    needed = sum(file.size for file in integrity.stored_files(backup))
    free = shutil.disk_usage(data_dir()).free
    if free < needed:
        raise BackupError(
            f"The backup needs {needed / MIB:,.0f} MiB, and the disk of {data_dir()} has {free / MIB:,.0f} "
            "MiB left. Free space there, or name another DATA_DIR."
        )


def _write_files(backup: StoredBackup) -> int:
    """Copies all files, and the database last; returns the number of listed blobs that are not there."""
    missing, database = 0, None
    for file in read_index(backup.folder):
        if file.path in database_copy.FILES.values():
            database = file
        elif file.is_blob and not backup.manifest.has_blobs:
            missing += not _is_intact(blobs.path(file.sha256), file)
        else:
            _write_file(backup, file)
    if database is None:
        raise BackupError(f"{backup.folder} has no database. Use another backup.")
    database_copy.write_database(backup.path(database), database.sha256)
    return missing


def _write_file(backup: StoredBackup, file: IndexedFile) -> None:
    target = _target(backup, file)
    make_folder(target.parent)
    part = target.with_name(f".{target.name}.restored")
    part.unlink(missing_ok=True)
    copied = copy_file(backup.path(file), part, blobs.SEALED if file.is_blob else 0o600)
    if copied.sha256 != file.sha256:
        part.unlink()
        raise BackupError(
            f"{backup.path(file)} changed since it was verified. The restoration is not complete; check the "
            "disk of the backup and run the command again."
        )
    # A linked file may have got another time since; `last_written` of logs reads it.
    os.utime(part, ns=(file.modified_ns, file.modified_ns))
    part.replace(target)


def _target(backup: StoredBackup, file: IndexedFile) -> Path:
    """Returns where a file belongs. Raises BackupError for a path that leads elsewhere."""
    if file.is_blob:
        return blobs.path(file.sha256)
    name = file.path.removeprefix(f"{FILES}/")
    own = (data_folder.AUDIT_HEADS, *data_folder.FOLDERS)
    exists_here = any(name == item or name.startswith(f"{item}/") for item in own)
    if not exists_here or ".." in name.split("/") or name == file.path:
        raise BackupError(
            f"{backup.folder} lists {file.path!r}, which no TrainHub writes. Use another backup."
        )
    return data_dir() / name


def _is_intact(path: Path, file: IndexedFile) -> bool:
    try:
        return hash_file(path).sha256 == file.sha256
    except FileNotFoundError:
        return False


def _has_blobs() -> bool:
    return any(blobs.root().glob("??/*"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@contextmanager
def _locked_hub() -> Iterator[None]:
    """Makes the data folder, and keeps a hub from being started on it. Raises BackupError if one runs."""
    make_folder(data_dir() / "run")
    try:
        descriptor = preflight.lock()
    except Stop as reason:
        raise BackupError(str(reason)) from reason
    try:
        yield
    finally:
        os.close(descriptor)
