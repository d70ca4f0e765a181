"""Tells which files of a folder the hub has already, so that only the others are sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from datastores.datasets.file_list import find_files
from datastores.models import DatasetVersion, UploadedFile
from datastores.states import ListingState
from datastores.uploads import file_rules, sessions
from datastores.uploads.file_rules import SentFile
from trainhub_launch.data.manifests import ListedFile, content_sha256
from workspaces.stored_files import blob_cache, blob_names, blobs, resumable

# Browsers and file systems keep milliseconds.
SAME_TIME_S = 0.001


@dataclass(frozen=True)
class FileComparison:
    """`missing`: the files to send, each with the number of bytes of it that are stored already; `refused`:
    the files that the version cannot have, with the reason."""

    missing: list[tuple[SentFile, int]]
    refused: list[tuple[SentFile, str]]


def compare_files(version: DatasetVersion, files: Sequence[SentFile]) -> FileComparison:
    """Confirms those of the files that are stored: in this upload, in the version before it, or, for a file
    whose SHA-256 is sent, anywhere in the workspace. Without a SHA-256 a file counts as the same if its path,
    its size and its time are. Raises sessions.UploadOver, and SpecError if there are too many."""
    refused = [(file, wrong) for file in files if (wrong := file_rules.file_refusal(file))]
    odd = {file.path for file, _ in refused}
    by_path = {file.path: file for file in files if file.path not in odd}
    rows = UploadedFile.objects.filter(version=version, path__in=by_path)
    stored = {row.path: row for row in rows if _is_same_row(by_path[row.path], row)}
    sessions.touch(version, timezone.now())
    UploadedFile.objects.filter(pk__in=[row.pk for row in stored.values()]).update(
        confirmed_at=timezone.now()
    )
    others = {path: file for path, file in by_path.items() if path not in stored}
    present = dict(_stored_elsewhere(version, others))
    if present:
        sessions.add_files(version, [(others[path], sha256) for path, sha256 in present.items()])
    missing = [file for path, file in others.items() if path not in present]
    return FileComparison(
        [(file, resumable.stored_bytes(part_path(version, file))) for file in missing], refused
    )


def part_path(version: DatasetVersion, file: SentFile) -> Path:
    """Returns the unfinished file of an upload in pieces. One that was changed meanwhile begins anew."""
    identity = "\0".join((file.path, str(file.size), str(file.modified_at)))
    name = hashlib.sha256(identity.encode()).hexdigest()
    return Path(settings.DATA_DIR) / "uploads" / f"{name}.dataset-{version.pk}"


def _stored_elsewhere(version: DatasetVersion, files: Mapping[str, SentFile]) -> Iterator[tuple[str, str]]:
    """Yields path and SHA-256 of the files whose content is stored for the workspace."""
    hashes = {file.sha256 for file in files.values() if file.sha256}
    named = blob_names.named_in(version.dataset.workspace_id, hashes) if hashes else set()
    before = _listed_before(version, files)
    for path, file in files.items():
        sha256 = file.sha256 if file.sha256 in named else ""
        if not sha256 and path in before and _is_same_listed(file, before[path]):
            sha256 = content_sha256(before[path].etag)
        # Also marks it as in use until it is named.
        if sha256 and blobs.hold(sha256) and blob_cache.size_of(sha256) == file.size:
            yield path, sha256


def _listed_before(version: DatasetVersion, files: Mapping[str, SentFile]) -> Mapping[str, ListedFile]:
    ready = DatasetVersion.objects.filter(dataset=version.dataset_id, state=ListingState.READY)
    before = ready.select_related("manifest").order_by("-number").first()
    return find_files(before, files) if before is not None else {}


def _is_same_row(file: SentFile, row: UploadedFile) -> bool:
    if file.sha256:
        return file.sha256 == row.sha256
    # Somebody who sends no times says within one upload by the name which files are meant.
    return file.size == row.size_bytes and (
        file.modified_at is None or abs(file.modified_at - row.modified_at) < SAME_TIME_S
    )


def _is_same_listed(file: SentFile, listed: ListedFile) -> bool:
    if file.sha256 or file.modified_at is None:
        return False
    return file.size == listed.size and abs(file.modified_at - listed.modified_at) < SAME_TIME_S
