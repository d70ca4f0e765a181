"""The files of a run: what its nodes upload when an attempt ends, and what its script logs meanwhile, in one
table.

Of two files with the same path the later attempt's counts; within an attempt, the later file.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from jobs.models import Artifact, Run

MAX_UNQUERIED_ATTEMPTS = 4
"""Attempts that are asked for without a look at which of them have left anything."""


def latest(run: Run) -> QuerySet[Artifact]:
    """What the run has left in all of its attempts, each path once."""
    rows = Artifact.objects.filter(run=run)
    attempts = list(range(run.attempt + 1))
    if len(attempts) > MAX_UNQUERIED_ATTEMPTS:
        attempts = sorted(rows.order_by().values_list("attempt", flat=True).distinct())
    # Named one by one, so that the index leads to a path.
    rows = rows.filter(attempt__in=attempts)
    for attempt in attempts[1:]:
        later = Artifact.objects.filter(run=run, attempt=attempt, path=OuterRef("path"))
        rows = rows.exclude(Q(attempt__lt=attempt) & Exists(later))
    return rows


def for_attempt(run: Run, attempt: int) -> QuerySet[Artifact]:
    """What an earlier attempt left; of the last one, everything that counts (`latest`)."""
    return latest(run) if attempt in (0, run.attempt) else Artifact.objects.filter(run=run, attempt=attempt)


def put_output(
    run: Run, attempt: int, path: str, sha256: str, size_bytes: int, *, node_rank: int | None = None
) -> Artifact:
    """Name a stored blob `path`; whatever bore that name in this attempt is replaced. `node_rank`: of the
    node that left it."""
    # The moment of naming, later than the blob's last `keep`: by it freeing tells that nobody else has kept
    # the blob since.
    fields = {"sha256": sha256, "size_bytes": size_bytes, "created_at": timezone.now(), "node_rank": node_rank}
    row, _ = Artifact.objects.update_or_create(run=run, attempt=attempt, path=path, defaults=fields)
    return row


def node_path(path: str, node_rank: int) -> str:
    """Where a node's file lies whose path is that of another file of a node before it."""
    return f"node_{node_rank}/{path}"
