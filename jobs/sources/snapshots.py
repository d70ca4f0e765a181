"""Freezes sources as canonical zips named by their SHA-256, so that equal folders give the same snapshot."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from jobs.models import Draft, Run, Snapshot
from jobs.querysets import RunQuerySet
from jobs.quotas import disk_quota
from jobs.sources import folders, zips
from jobs.sources.examples import Example, example, examples
from jobs.sources.folders import SourceTree
from jobs.sources.source_files import FIELD, SnapshotError, read_chunks
from workspaces.access import Principal
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace
from workspaces.stored_files import blob_gc, blob_writer, blobs

__all__ = ["Example", "SnapshotError", "examples", "from_example", "from_folder", "from_zip"]
# The earliest date that a zip can store.
EPOCH = (1980, 1, 1, 0, 0, 0)
# Snapshots released in one transaction.
MAX_RELEASED = 500


def from_zip(file: IO[bytes], principal: Principal) -> Snapshot:
    """Makes a snapshot of an uploaded zip, which must be seekable. Raises SnapshotError.

    If the zip holds a single folder that is not a Python package, that folder's content is the source.
    """
    return _freeze(zips.read_zip(file), principal)


def from_folder(path: Path, principal: Principal) -> Snapshot:
    """Makes a snapshot of a folder of the hub's machine; follows links only inside it. Raises
    SnapshotError."""
    return _freeze(folders.read_folder(path), principal)


def from_example(name: str, principal: Principal) -> Snapshot:
    return from_folder(example(name).folder, principal)


def release_unused(used: Iterable[tuple[int, str]], until: datetime | None = None) -> None:
    """Deletes snapshots, given as (workspace id, hash), that no run or draft uses. `until`: only those that
    were last uploaded before that time."""
    hashes: dict[int, set[str]] = {}
    for workspace_id, sha256 in used:
        hashes.setdefault(workspace_id, set()).add(sha256)
    for workspace_id, hashes_here in hashes.items():
        with transaction.atomic():
            # Submission takes the same lock before it checks that its snapshot still exists.
            Workspace.objects.select_for_update().get(pk=workspace_id)
            runs = Run.objects.filter(workspace_id=workspace_id)
            needed = _named(runs, hashes_here)
            drafts = Draft.objects.filter(workspace_id=workspace_id).annotate(text=Cast("steps", TextField()))
            unnamed = [
                sha256 for sha256 in hashes_here - needed if not drafts.filter(text__contains=sha256).exists()
            ]
            rows = Snapshot.objects.filter(workspace_id=workspace_id, sha256__in=unnamed)
            if until is not None:
                rows = rows.filter(created_at__lte=until)
            freed = {row.sha256: row.created_at.timestamp() for row in rows}
            rows.delete()
        blob_gc.free(freed)


def _named(runs: RunQuerySet, hashes: set[str]) -> set[str]:
    """Returns the hashes that runs name as their source. Whoever submits waits meanwhile, so PostgreSQL looks
    for one run of each, by the index run_of_source; SQLite has none, and reads the runs once for all."""
    if connection.vendor == "postgresql":
        return {sha256 for sha256 in hashes if runs.filter(spec__source__id=sha256).exists()}
    named = runs.filter(spec__source__id__in=hashes).order_by()
    return set(named.values_list("spec__source__id", flat=True).distinct())


def release_abandoned(until: datetime) -> None:
    """Deletes snapshots that were last uploaded before `until` and that no run or draft uses: those of
    reviews and uploads with which nobody went on."""
    old = Snapshot.objects.filter(created_at__lte=until).order_by()
    for workspace_id in list(old.values_list("workspace_id", flat=True).distinct()):
        used = Run.objects.filter(workspace_id=workspace_id).values_list("spec__source__id", flat=True)
        hashes = set(old.filter(workspace_id=workspace_id).values_list("sha256", flat=True))
        abandoned = sorted(hashes - set(used.distinct()))
        for start in range(0, len(abandoned), MAX_RELEASED):
            batch = abandoned[start : start + MAX_RELEASED]
            # Somebody may upload one again meanwhile.
            release_unused(((workspace_id, sha256) for sha256 in batch), until)


def _freeze(tree: SourceTree, principal: Principal) -> Snapshot:
    if not tree.entries:
        raise SnapshotError("there is no file in it; give the folder that holds the script")
    temporary = Path(settings.DATA_DIR) / "tmp"
    temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=temporary) as folder:
            packed = Path(folder) / "snapshot.zip"
            manifest = _pack(tree, packed)
            size = packed.stat().st_size
            _check_room(packed, size, principal)
            sha256 = blob_writer.store_file(packed)
    except OSError as error:
        if error.errno not in blobs.DISK_FULL:
            raise
        raise SnapshotError(
            "cannot be stored: the hub's disk is full; have its operator free space below DATA_DIR"
        ) from error
    snapshot, is_new = Snapshot.objects.get_or_create(
        workspace=principal.workspace,
        sha256=sha256,
        defaults={
            "size_bytes": size,
            "manifest": manifest,
            "warnings": _warnings(tree),
            "created_by": principal.user,
        },
    )
    if not is_new:
        # Whoever uploads it again is about to use it: it is not abandoned.
        Snapshot.objects.filter(pk=snapshot.pk).update(created_at=timezone.now())
    return snapshot


def _check_room(packed: Path, size: int, principal: Principal) -> None:
    """Raises SnapshotError if a quota leaves no room for a snapshot that the workspace does not have."""
    try:
        disk_quota.check_room(principal.workspace, principal.user, size, field=FIELD)
    except disk_quota.DiskQuotaExceeded as error:
        with packed.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if not Snapshot.objects.filter(workspace=principal.workspace, sha256=sha256).exists():
            raise SnapshotError(error.message) from error


def _pack(tree: SourceTree, target: Path) -> list[dict[str, str | int]]:
    """Writes the zip and returns its manifest. Sorted names, a fixed date and only two file modes make the
    zip independent of when and where it is written."""
    manifest: list[dict[str, str | int]] = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for entry in sorted(tree.entries, key=lambda entry: entry.path):
            info = zipfile.ZipInfo(entry.path, EPOCH)
            # 3 is Unix: only then does a reader such as unzip look for a file mode in `external_attr`.
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if entry.executable else 0o100644) << 16
            size = 0
            with archive.open(info, "w") as out:
                for chunk in read_chunks(entry):
                    size += len(chunk)
                    # The declared sizes were checked before, but a file may grow, and a zip may declare a
                    # wrong size.
                    if size > settings.MAX_SNAPSHOT_BYTES:
                        raise SnapshotError(f"{entry.path!r} grows while it is read; try again")
                    out.write(chunk)
            manifest.append({"path": entry.path, "size": size})
    return manifest


def _warnings(tree: SourceTree) -> list[str]:
    if not tree.ignored_count:
        return []
    what = (
        "1 file or folder was" if tree.ignored_count == 1 else f"{tree.ignored_count} files or folders were"
    )
    by = f" by {tree.rules.file}" if tree.rules.file else ": caches and version control"
    return [f"{what} left out{by}."]


@compiled
def snapshots_of(workspace_id: int, sha256: str) -> QuerySet[Snapshot]:
    """Returns the snapshot with this id in the workspace, or none."""
    return Snapshot.objects.filter(workspace_id=workspace_id, sha256=sha256)
