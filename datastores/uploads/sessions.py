"""The upload of a version: its begin, the files that come, and its end.

A version that is being uploaded has a row for each file that is stored (UploadedFile). Whoever goes on with
an upload names all files anew: those that are stored are confirmed, and only the others are sent. So what
counts in the end are the files of the last time, and those that were removed from the folder meanwhile do not
come back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from datastores.changes import require_contributor
from datastores.datasets import changes
from datastores.models import Dataset, DatasetVersion, UploadedFile
from datastores.states import ListingState
from datastores.uploads import file_rules
from datastores.uploads.file_rules import SentFile
from trainhub_launch.errors import SpecError
from workspaces import audit
from workspaces.access import Principal
from workspaces.stored_files.resumable import KEEP_UNFINISHED_S

# As long as the pieces of its unfinished files.
KEEP_DAYS = round(KEEP_UNFINISHED_S / 86_400)


class UploadOver(Exception):
    """The version takes no files: it is complete, its upload was cancelled, or its dataset was deleted."""


def begin_upload(principal: Principal, dataset: Dataset) -> DatasetVersion:
    """Begins the upload of the next version, or goes on with the one that this person has begun. Raises
    SpecError, and PermissionDenied."""
    require_contributor(principal)
    if refusal := changes.upload_refusal(dataset.datastore):
        raise SpecError("name", refusal)
    with transaction.atomic():
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        waiting = dataset.versions.filter(state=ListingState.UPLOADING).first()
        if waiting is None:
            return changes.new_version(principal, dataset)
        require_uploader(principal, waiting)
        waiting.begun_at = waiting.seen_at = timezone.now()
        waiting.save(update_fields=["begun_at", "seen_at"])
    return waiting


def require_uploader(principal: Principal, version: DatasetVersion) -> None:
    """Raises SpecError unless this person uploads the version, and PermissionDenied."""
    require_contributor(principal)
    if version.state != ListingState.UPLOADING:
        raise SpecError("version", f"{version} is {version.state}: begin another upload")
    if version.created_by_id != principal.user.pk:
        raise SpecError("version", describe_upload(version))


def describe_upload(version: DatasetVersion) -> str:
    """Returns who uploads the version, and what others can do."""
    who = version.created_by.username if version.created_by else "a deleted account"
    return (
        f"{who} uploads {version} since {version.created_at:%Y-%m-%d %H:%M} UTC: wait until that is done, or "
        "cancel that upload"
    )


def store_file(version: DatasetVersion, file: SentFile, sha256: str) -> None:
    """Notes a file of the version whose content is stored. Raises UploadOver."""
    add_files(version, [(file, sha256)])


def add_files(version: DatasetVersion, files: Sequence[tuple[SentFile, str]]) -> None:
    """Notes files with the SHA-256 of their stored content. One that has a path already replaces the earlier
    one. Raises UploadOver, and SpecError if there are too many."""
    now = timezone.now()
    with transaction.atomic():
        # Uploads of one version come one after the other here, and after or before its end.
        touch(version, now)
        by_path = {file.path: (file, sha256) for file, sha256 in files}
        earlier = UploadedFile.objects.filter(version=version, path__in=by_path)
        sizes = dict(earlier.values_list("path", "size_bytes"))
        more = len(by_path) - len(sizes)
        size = sum(file.size for file, _ in by_path.values()) - sum(sizes.values())
        version.refresh_from_db(fields=["files", "bytes"])
        if wrong := file_rules.room_refusal(version.files + more, version.bytes + size):
            raise SpecError("files", wrong)
        UploadedFile.objects.bulk_create(
            [_row(version, file, sha256, now) for file, sha256 in by_path.values()],
            update_conflicts=True,
            unique_fields=["version", "path"],
            update_fields=["size_bytes", "sha256", "modified_at", "confirmed_at"],
        )
        rows = DatasetVersion.objects.filter(pk=version.pk)
        rows.update(files=F("files") + more, bytes=F("bytes") + size)


def touch(version: DatasetVersion, now: datetime) -> None:
    """Notes that the upload goes on. Raises UploadOver."""
    rows = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.UPLOADING)
    if not rows.update(seen_at=now):
        raise UploadOver


def cancel_upload(principal: Principal, version: DatasetVersion) -> None:
    """Forgets an upload: there is no such version. Raises SpecError, and PermissionDenied."""
    require_contributor(principal)
    with transaction.atomic():
        waiting = DatasetVersion.objects.filter(pk=version.pk, state=ListingState.UPLOADING)
        if not waiting.select_for_update().exists():
            raise SpecError("version", f"{version} is no upload that could be cancelled")
        audit.record(principal.user, "dataset.cancel", str(version), principal.workspace)
        waiting.delete()


def expire_uploads(now: datetime | None = None) -> int:
    """Forgets uploads that nobody has gone on with for KEEP_DAYS; returns how many."""
    since = (now or timezone.now()) - timedelta(days=KEEP_DAYS)
    waiting = DatasetVersion.objects.filter(state=ListingState.UPLOADING, seen_at__lt=since)
    return sum(waiting.filter(pk=pk).delete()[0] > 0 for pk in [*waiting.values_list("pk", flat=True)])


def _row(version: DatasetVersion, file: SentFile, sha256: str, now: datetime) -> UploadedFile:
    return UploadedFile(
        version=version,
        path=file.path,
        size_bytes=file.size,
        sha256=sha256,
        modified_at=now.timestamp() if file.modified_at is None else file.modified_at,
        confirmed_at=now,
    )
