"""The output files of a run: sent by its nodes to the hub or into a datastore, or logged by its script.

For two files with the same path, the later attempt counts; within an attempt, a file on the hub before one in
a datastore, and of two on the hub the later one.
"""

from __future__ import annotations

from typing import TypeVar, cast

from django.db import connection, models
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Substr
from django.utils import timezone

from jobs.models import Artifact, OutputFolder, Run, StoredOutput

FileRow = TypeVar("FileRow", bound=models.Model)

# Up to this many attempts are included without a query for which of them have outputs.
MAX_UNQUERIED_ATTEMPTS = 4


def latest(run: Run) -> QuerySet[Artifact]:
    """Returns the outputs of all attempts that are on the hub, each path once."""
    rows = Artifact.objects.filter(run=run)
    attempts = _attempts(run)
    # Explicit attempt numbers let the database use the index on (run, attempt, path).
    rows = rows.filter(attempt__in=attempts)
    for attempt in attempts[1:]:
        rows = rows.exclude(Q(attempt__lt=attempt) & _is_artifact(run, attempt))
    for folder in _folders(run):
        rows = rows.exclude(Q(attempt__lt=folder.attempt) & _is_stored(folder))
    return rows


def for_attempt(run: Run, attempt: int) -> QuerySet[Artifact]:
    """Returns the outputs of an earlier attempt; for the latest attempt or 0, those of `latest`."""
    return latest(run) if attempt in (0, run.attempt) else Artifact.objects.filter(run=run, attempt=attempt)


def latest_stored(run: Run) -> QuerySet[StoredOutput]:
    """Returns the outputs of all attempts that lie in a datastore, each path once, and none that `latest`
    has."""
    rows = StoredOutput.objects.select_related("folder__datastore")
    folders = _folders(run)
    if not folders:
        return rows.none()
    rows = rows.filter(folder__in=folders)
    for attempt in _attempts(run):
        rows = rows.exclude(Q(folder__attempt__lte=attempt) & _is_artifact(run, attempt))
    for folder in folders:
        rows = rows.exclude(Q(folder__attempt__lt=folder.attempt) & _is_stored(folder))
    return rows


def stored_for_attempt(run: Run, attempt: int) -> QuerySet[StoredOutput]:
    """Returns those of an earlier attempt; for the latest attempt or 0, those of `latest_stored`."""
    if attempt in (0, run.attempt):
        return latest_stored(run)
    rows = StoredOutput.objects.select_related("folder__datastore")
    if not _may_be_stored(run):
        return rows.none()
    return rows.filter(folder__run=run, folder__attempt=attempt).exclude(_is_artifact(run, attempt))


def all_of(run: Run, attempt: int = 0) -> list[Artifact | StoredOutput]:
    """Returns all outputs, those on the hub and those in a datastore, sorted by path."""
    rows: list[Artifact | StoredOutput] = [*for_attempt(run, attempt)]
    rows += stored_for_attempt(run, attempt)
    return sorted(rows, key=lambda row: row.path)


def _may_be_stored(run: Run) -> bool:
    """Returns whether an attempt may have written into a datastore. The spec says so without a query."""
    return bool(run.spec.get("outputs"))


def _folders(run: Run) -> list[OutputFolder]:
    return list(OutputFolder.objects.filter(run=run)) if _may_be_stored(run) else []


def _attempts(run: Run) -> list[int]:
    attempts = list(range(run.attempt + 1))
    if len(attempts) <= MAX_UNQUERIED_ATTEMPTS:
        return attempts
    rows = Artifact.objects.filter(run=run).order_by()
    return sorted(rows.values_list("attempt", flat=True).distinct())


def _is_artifact(run: Run, attempt: int) -> Exists:
    """Returns the condition that a row has the path of an artifact of that attempt."""
    return Exists(Artifact.objects.filter(run=run, attempt=attempt, path=OuterRef("path")))


def _is_stored(folder: OutputFolder) -> Exists:
    """Returns the condition that a row has the path of a file in that folder."""
    return Exists(StoredOutput.objects.filter(folder=folder, path=OuterRef("path")))


def rows_below(rows: QuerySet[FileRow], path: str) -> QuerySet[FileRow]:
    """Returns the files, by their column `path`, in a folder and its subfolders; "" is the root."""
    if not path:
        return rows
    start = f"{path}/"
    if connection.vendor == "sqlite":
        # SQLite sorts by code point, and "0" is the character after "/".
        return rows.filter(path__gte=start, path__lt=f"{path}0")
    # Other databases may sort by a language's rules, so a range would not work.
    below = rows.alias(start=Substr("path", 1, len(start))).filter(start=Value(start))
    return cast("QuerySet[FileRow]", below)


def put_output(
    run: Run, attempt: int, path: str, sha256: str, size_bytes: int, *, node_rank: int | None = None
) -> Artifact:
    """Records a stored blob as the output `path` and replaces an earlier one of this attempt.

    `node_rank`: of the node that uploaded it; None for a logged file."""
    # `created_at` is later than the blob's last `keep`: garbage collection compares the two times to see
    # whether the blob was stored again since.
    fields = {
        "sha256": sha256,
        "size_bytes": size_bytes,
        "created_at": timezone.now(),
        "node_rank": node_rank,
    }
    row, _ = Artifact.objects.update_or_create(run=run, attempt=attempt, path=path, defaults=fields)
    return row


def node_path(path: str, node_rank: int) -> str:
    """Returns the path for a node's file if a node of lower rank has a different file with the same path."""
    return f"node_{node_rank}/{path}"
