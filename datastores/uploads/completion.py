"""The end of an upload: its files become a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from datastores.datasets.file_list import compare, pack_starts
from datastores.models import DatasetFile, DatasetVersion, Manifest, UploadedFile
from datastores.states import ListingState
from datastores.uploads import sessions
from trainhub_launch.data.file_names import both_file_and_folder
from trainhub_launch.data.file_order import in_order
from trainhub_launch.data.manifests import ListedFile, ManifestWriter, content_etag, content_sha256
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
    with transaction.atomic():
        waiting = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.UPLOADING)
        locked = waiting.select_for_update().select_related("dataset").first()
        if locked is None:
            raise SpecError("version", f"{version} takes no files any more: begin another upload")
        _finish(principal, locked, files)
    version.refresh_from_db()


def make_ready(version: DatasetVersion, files: Iterable[ListedFile], source: str) -> None:
    """Makes the list of a version whose files are stored, and keeps them stored. `files`: in any order, each
    with `content_etag`; `source`: what has them, for messages. The caller has locked the version. Raises
    SpecError for files that no disk can have."""
    output = blobs.part_path()
    try:
        writer, contents = _write(files, output, source)
        size, starts = output.stat().st_size, pack_starts(writer.starts)
        manifest = Manifest(version=version, sha256=store_file(output), size_bytes=size, starts=starts)
    finally:
        output.unlink(missing_ok=True)
    ready = DatasetVersion.objects.filter(dataset=version.dataset, state=ListingState.READY)
    earlier = ready.select_related("manifest").order_by("-number").first()
    _name_contents(version, contents)
    version.state, version.ended_at = ListingState.READY, timezone.now()
    version.files, version.bytes = writer.files, writer.bytes
    version.differences = compare(earlier, manifest).to_json() if earlier is not None else {}
    version.save(update_fields=["state", "ended_at", "files", "bytes", "differences"])
    manifest.save()


def _finish(principal: Principal, version: DatasetVersion, files: int | None) -> None:
    rows = UploadedFile.objects.filter(version=version, confirmed_at__gte=version.begun_at)
    count = rows.count()
    if files is not None and files != count:
        raise SpecError(
            "files",
            f"the hub has {count:,} files, and {files:,} were expected: name them all again, and send those "
            "that are missing",
        )
    if not count:
        raise SpecError("files", "the hub has no file of this upload: send at least one")
    listed = (
        ListedFile(row.path, row.size_bytes, content_etag(row.sha256), row.modified_at)
        for row in rows.iterator()
    )
    make_ready(version, listed, "the upload")
    UploadedFile.objects.filter(version=version).delete()
    audit.record(
        principal.user,
        "dataset.upload",
        str(version),
        principal.workspace,
        files=str(version.files),
        bytes=str(version.bytes),
    )


def _write(
    files: Iterable[ListedFile], output: Path, source: str
) -> tuple[ManifestWriter, Mapping[str, int]]:
    """Returns the writer of the list, and the size of each content by its SHA-256."""
    contents: dict[str, int] = {}
    with output.open("wb") as stream:
        writer = ManifestWriter(stream)
        for file in _without_conflicts(in_order(files), source):
            writer.write(file)
            contents[content_sha256(file.etag)] = file.size
        writer.flush()
    return writer, contents


def _without_conflicts(files: Iterable[ListedFile], source: str) -> Iterator[ListedFile]:
    """Raises SpecError for a file that is a folder, too: that comes right before what is in the folder."""
    previous = ""
    for file in files:
        if previous and file.path.startswith(f"{previous}/"):
            raise SpecError("files", both_file_and_folder(source, previous).rstrip("."))
        previous = file.path
        yield file


def _name_contents(version: DatasetVersion, contents: Mapping[str, int]) -> None:
    """Notes what the dataset has, so that it stays stored."""
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
