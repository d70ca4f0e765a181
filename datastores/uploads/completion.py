"""The end of an upload: its files become a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from datastores.datasets.file_list import compare, pack_starts
from datastores.models import DatasetFile, DatasetVersion, Manifest, UploadedFile
from datastores.states import ListingState
from datastores.uploads import sessions
from trainhub_launch.data.file_names import both_file_and_folder
from trainhub_launch.data.file_order import in_order
from trainhub_launch.data.manifests import ListedFile, ManifestWriter, content_etag
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal
from workspaces.stored_files import blobs
from workspaces.stored_files.blob_writer import store_file

AT_ONCE = 500


def finish_upload(principal: Principal, version: DatasetVersion, files: int | None = None) -> None:
    """Makes the version of the files that were sent or confirmed since the upload was begun last. `files`:
    how many its uploader has. Raises SpecError, and PermissionDenied."""
    sessions.require_uploader(principal, version)
    output = blobs.part_path()
    try:
        with transaction.atomic():
            _finish(principal, version, files, output)
    finally:
        output.unlink(missing_ok=True)
    version.refresh_from_db()


def _finish(principal: Principal, version: DatasetVersion, files: int | None, output: Path) -> None:
    waiting = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.UPLOADING)
    locked = waiting.select_for_update().select_related("dataset").first()
    if locked is None:
        raise SpecError("version", f"{version} takes no files any more: begin another upload")
    rows = UploadedFile.objects.filter(version=locked, confirmed_at__gte=locked.begun_at)
    count = rows.count()
    if files is not None and files != count:
        raise SpecError(
            "files",
            f"the hub has {count:,} files, and {files:,} were expected: name them all again, and send those "
            "that are missing",
        )
    if not count:
        raise SpecError("files", "the hub has no file of this upload: send at least one")
    writer = _write(rows, output)
    size = output.stat().st_size
    starts = pack_starts(writer.starts)
    manifest = Manifest(version=locked, sha256=store_file(output), size_bytes=size, starts=starts)
    ready = DatasetVersion.objects.filter(dataset=locked.dataset, state=ListingState.READY)
    earlier = ready.select_related("manifest").order_by("-number").first()
    _name_contents(locked, rows)
    waiting.update(
        state=ListingState.READY,
        files=writer.files,
        bytes=writer.bytes,
        differences=compare(earlier, manifest).to_json() if earlier is not None else {},
        ended_at=timezone.now(),
    )
    manifest.save()
    UploadedFile.objects.filter(version=locked).delete()
    audit.record(
        principal.user,
        "dataset.upload",
        str(locked),
        principal.workspace,
        files=str(writer.files),
        bytes=str(writer.bytes),
    )


def _write(rows: QuerySet[UploadedFile], output: Path) -> ManifestWriter:
    files = (
        ListedFile(row.path, row.size_bytes, content_etag(row.sha256), row.modified_at)
        for row in rows.iterator()
    )
    with output.open("wb") as stream:
        writer = ManifestWriter(stream)
        for file in _without_conflicts(in_order(files)):
            writer.write(file)
        writer.flush()
    return writer


def _without_conflicts(files: Iterable[ListedFile]) -> Iterator[ListedFile]:
    """Raises SpecError for a file that is a folder, too: that comes right before what is in the folder."""
    previous = ""
    for file in files:
        if previous and file.path.startswith(f"{previous}/"):
            raise SpecError("files", both_file_and_folder("the upload", previous).rstrip("."))
        previous = file.path
        yield file


def _name_contents(version: DatasetVersion, rows: QuerySet[UploadedFile]) -> None:
    """Notes what the dataset has, so that it stays stored."""
    contents = {row.sha256: row.size_bytes for row in rows.iterator()}
    DatasetFile.objects.bulk_create(
        (
            DatasetFile(
                dataset_id=version.dataset_id,
                sha256=sha256,
                size_bytes=size,
                created_by_id=version.created_by_id,
            )
            for sha256, size in contents.items()
        ),
        batch_size=AT_ONCE,
        ignore_conflicts=True,
    )
