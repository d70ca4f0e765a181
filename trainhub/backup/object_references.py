"""Files that lie in the object store of BLOB_STORE, and how a backup has them: by reference (the database's
rows say which objects they are) or by content."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.db.models import Sum
from django.utils import timezone

from trainhub.backup.errors import BackupError
from trainhub.backup.manifest import BackupManifest
from workspaces.object_store.client import store_configuration
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import LIVE, ObjectState, StoredObject
from workspaces.object_store.rows import live_objects
from workspaces.stored_files import blob_cache, blob_moves


@dataclass(frozen=True)
class ObjectReferences:
    """What the store has at one moment. `place`: as BLOB_STORE names it, "" without a store. `hashes`: of the
    files whose objects are complete."""

    place: str = ""
    hashes: frozenset[str] = frozenset()
    size_bytes: int = 0


def object_references() -> ObjectReferences:
    """Returns what the store has now. Called before the database is copied: what is complete then is so in
    the copy, too, and of everything else the backup needs the bytes."""
    configuration = store_configuration()
    if configuration is None:
        return ObjectReferences()
    rows = live_objects().filter(state=ObjectState.STORED)
    size = rows.aggregate(total=Sum("size_bytes"))["total"] or 0
    hashes = frozenset(rows.values_list("sha256", flat=True).iterator())
    return ObjectReferences(configuration.place, hashes, size)


def read_referenced(sha256: str) -> Iterator[bytes]:
    """Yields the content of an object. Raises BackupError if the store does not give it."""
    row = live_objects().filter(sha256=sha256, state=ObjectState.STORED).first()
    if row is None:
        return
    try:
        yield from blob_cache.read_object(row, 0, row.size_bytes)
    except StoreUnavailable as error:
        raise BackupError(f"No backup was made: {error}") from error


def check_place(manifest: BackupManifest) -> None:
    """Raises BackupError if files of the backup are in a store that this hub does not use."""
    configuration = store_configuration()
    if not manifest.objects or manifest.has_objects:
        return
    if configuration is None or configuration.place != manifest.object_store:
        now = f"it is {configuration.place}" if configuration else "it is not set"
        raise BackupError(
            f"{manifest.objects} files of this backup are in {manifest.object_store}, which BLOB_STORE must "
            f"name ({now}). Set BLOB_STORE={manifest.object_store}, with the settings of its access, or "
            "use a backup that was made with --with-objects."
        )


def adopt_restored_rows(manifest: BackupManifest, data: Path) -> int:
    """Makes the restored rows right for this hub. Returns how many objects of references are not in the
    store, with their size. `data`: the folder of the restored files."""
    configuration = store_configuration()
    if not manifest.object_store:
        return 0
    if manifest.has_objects:
        # Every file is on this disk. Whatever the store has, each is uploaded anew, under the same name.
        rows = StoredObject.objects.filter(place=manifest.object_store)
        rows.filter(state=ObjectState.DELETED).delete()
        if configuration is None:
            rows.delete()
        else:
            rows.filter(state__in=LIVE).update(
                place=configuration.place,
                state=ObjectState.WAITING,
                server=socket.gethostname()[:100],
                try_at=timezone.now(),
                waits_since=timezone.now(),
                tries=0,
                error="",
            )
        return 0
    try:
        return sum(bool(verdict.problem) for verdict in blob_moves.verify_objects(is_read=False))
    except StoreUnavailable as error:
        raise BackupError(
            f"Everything is restored to {data}, but the objects of {manifest.object_store} could not be "
            f"verified: {error} Then run `manage.py blobs verify`."
        ) from error
