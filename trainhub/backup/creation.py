"""Makes a backup while the hub works: the database first, then the files that it names."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainhub import __version__
from trainhub.backup import backup_folder, data_folder, database_copy, key_folder
from trainhub.backup.backup_folder import StoredBackup
from trainhub.backup.errors import BackupError, system_errors
from trainhub.backup.file_collection import FileCollection
from trainhub.backup.file_copy import write_to_disk
from trainhub.backup.file_index import IndexedFile, IndexSummary, IndexWriter
from trainhub.backup.key_folder import KeyContent
from trainhub.backup.manifest import BackupManifest, write_manifest
from trainhub.backup.object_references import ObjectReferences, object_references
from workspaces import audit
from workspaces.stored_files import blob_names, blobs, deletions

# How long a backup waits for the hub to finish deleting a run.
MAX_WAIT_S = 900.0
MAX_NAMED = 1000


@dataclass(frozen=True)
class BackupOptions:
    """`folder`: that of all backups. `keys`: the folder for the keys, None: they are not written.
    `has_blobs`: False lists content-addressed files without storing them. `has_objects`: files that are
    only in the object store are copied, too, and not only referred to. `is_linked`: they are linked where
    that is possible. `keep`: how many backups stay, 0: all."""

    folder: Path
    keys: Path | None = None
    has_blobs: bool = True
    has_objects: bool = False
    is_linked: bool = True
    keep: int = 0


@dataclass(frozen=True)
class FinishedBackup:
    """`new_bytes`: those that were written, without what was linked or there already. `keys`: where the keys
    are, None if they were not written. `removed`: number of old backups that were removed."""

    stored: StoredBackup
    new_bytes: int
    seconds: float
    keys: Path | None
    removed: int


@dataclass(frozen=True)
class _Content:
    """What the manifest says about the content of a backup."""

    migrations: list[str]
    keys: list[KeyContent]
    missing: list[str]
    index: IndexSummary
    new_bytes: int
    references: ObjectReferences


def create_backup(options: BackupOptions, say: Callable[[str], None]) -> FinishedBackup:
    """Makes a backup; `say` gets sentences about what it waits for. Raises BackupError, and leaves nothing
    then that could be taken for a backup."""
    started_at = time.monotonic()
    if options.keys is not None:
        backup_folder.check_apart(options.keys, options.folder, "the folder of the backups")
        backup_folder.check_apart(options.keys, data_folder.data_dir(), "the data folder")
    with _sentences(options.folder), backup_folder.locked_folder(options.folder):
        if not database_copy.tables():
            raise BackupError(f"{database_copy.description()} is empty: there is no hub to back up.")
        previous = _previous(options.folder)
        started = backup_folder.begin_backup(options.folder)
        try:
            with deletions.held(MAX_WAIT_S):
                content = _collect(options, started, previous)
            finished = _finish(options, started, content, say)
        except BaseException:
            shutil.rmtree(started, ignore_errors=True)
            raise
        removed = backup_folder.remove_old(options.folder, options.keep) if options.keep else 0
        audit.record("command line", "hub.backed-up", finished.manifest.name, folder=str(options.folder))
    keys = options.keys / finished.manifest.name if options.keys is not None else None
    return FinishedBackup(finished, content.new_bytes, time.monotonic() - started_at, keys, removed)


def _collect(options: BackupOptions, started: Path, previous: StoredBackup | None) -> _Content:
    keys, migrations = key_folder.read_keys(), database_copy.applied_migrations()
    references = object_references()
    missing = list(_missing_blobs(references))
    with IndexWriter(started) as index:
        files = FileCollection(started, index, previous, is_linked=options.is_linked)
        files.add_audit_heads()
        name, copied = database_copy.copy_database(started)
        index.add(IndexedFile(name, *copied))
        if database_copy.applied_migrations() != migrations:
            raise BackupError("The hub was upgraded while the backup was made. Run the command again.")
        keys = key_folder.union(keys, key_folder.read_keys())
        files.add_folders()
        referred = frozenset() if options.has_objects else references.hashes
        files.add_blobs(is_stored=options.has_blobs, without=referred)
        if options.has_objects:
            files.add_objects(references.hashes)
    new_bytes = files.new_bytes + copied.size
    lost = sorted({*missing, *files.damaged})
    return _Content(migrations, keys, lost, index.summary, new_bytes, references)


def _finish(
    options: BackupOptions, started: Path, content: _Content, say: Callable[[str], None]
) -> StoredBackup:
    """Writes keys and manifest, and gives the backup its name."""
    name = started.name.removesuffix(backup_folder.UNFINISHED)
    if options.keys is not None:
        key_folder.write_keys(options.keys, name, content.keys)
    for unknown in data_folder.unknown_names():
        say(f"{data_folder.data_dir() / unknown} is not in the backup: this version does not know it.")
    manifest = BackupManifest(
        name=name,
        version=__version__,
        database=database_copy.kind(),
        database_version=database_copy.version(),
        migrations=content.migrations,
        has_blobs=options.has_blobs,
        files=content.index,
        keys=[item.key.name for item in content.keys],
        excluded=data_folder.excluded(),
        missing=content.missing[:MAX_NAMED],
        missing_count=len(content.missing),
        finished_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        object_store=content.references.place,
        objects=len(content.references.hashes),
        object_bytes=content.references.size_bytes,
        has_objects=options.has_objects,
    )
    write_to_disk(started)
    write_manifest(started, manifest)
    folder = started.rename(started.with_name(name))
    write_to_disk(folder)
    return StoredBackup(folder, manifest)


def _missing_blobs(references: ObjectReferences) -> Iterator[str]:
    """Yields the hashes that the database names and that are neither on the disk nor in the store: lost
    before this backup, or still on the disk of another server."""
    for table in blob_names.TABLES:
        hashes = table._default_manager.order_by().values_list("sha256", flat=True).distinct()
        for sha256 in hashes.iterator():
            is_there = sha256 in references.hashes or not blobs.SHA256.match(sha256)
            if not is_there and not blobs.path(sha256).is_file():
                yield sha256


def _previous(folder: Path) -> StoredBackup | None:
    """Returns the newest backup, whose unchanged files are linked; None if there is none that can be read."""
    try:
        previous = backup_folder.open_backup(folder)
        backup_folder.check_index(previous)
    except BackupError:
        return None
    return previous


@contextmanager
def _sentences(folder: Path) -> Iterator[None]:
    try:
        with system_errors(folder):
            yield
    except deletions.DeletionsBusy as busy:
        raise BackupError(f"No backup was made: {busy}. Try again later.") from busy
