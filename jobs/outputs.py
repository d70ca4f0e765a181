"""The output files of a run: uploaded by its nodes when an attempt ends, or logged by its script.

For two files with the same path, the later attempt counts; within an attempt, the later file.
"""

from __future__ import annotations

from typing import TypeVar, cast

from django.db import connection, models
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Substr
from django.utils import timezone

from jobs.models import Artifact, Run

FileRow = TypeVar("FileRow", bound=models.Model)

# Up to this many attempts are included without a query for which of them have outputs.
MAX_UNQUERIED_ATTEMPTS = 4


def latest(run: Run) -> QuerySet[Artifact]:
    """Returns the outputs of all attempts of the run, each path once."""
    rows = Artifact.objects.filter(run=run)
    attempts = list(range(run.attempt + 1))
    if len(attempts) > MAX_UNQUERIED_ATTEMPTS:
        attempts = sorted(rows.order_by().values_list("attempt", flat=True).distinct())
    # Explicit attempt numbers let the database use the index on (run, attempt, path).
    rows = rows.filter(attempt__in=attempts)
    for attempt in attempts[1:]:
        later = Artifact.objects.filter(run=run, attempt=attempt, path=OuterRef("path"))
        rows = rows.exclude(Q(attempt__lt=attempt) & Exists(later))
    return rows


def for_attempt(run: Run, attempt: int) -> QuerySet[Artifact]:
    """Returns the outputs of an earlier attempt; for the latest attempt or 0, those of `latest`."""
    return latest(run) if attempt in (0, run.attempt) else Artifact.objects.filter(run=run, attempt=attempt)


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
