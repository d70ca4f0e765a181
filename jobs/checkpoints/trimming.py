"""Deletes the checkpoints that a run no longer keeps. The newest complete one always stays. Of those in a
datastore, the hub forgets everything but that a node is to remove them."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from jobs.checkpoints.states import CheckpointState
from jobs.models import Attempt, Checkpoint, CheckpointFile, Run, StoredCheckpointFile
from jobs.retention.run_purge import delete_rows
from jobs.states import RunState
from trainhub_launch.spec_reader import read_spec

# Torn ones have no files any more; so many of the newest stay to be read about.
MAX_TORN = 5


def trim(run_id: str) -> None:
    """Keeps as many of the newest complete checkpoints as the run's spec says, as many unconfirmed ones that
    are newer than these, and those with which an attempt is about to begin."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return
    keep = read_spec(run.spec).checkpoint.keep
    rows = Checkpoint.objects.filter(run=run)
    complete = _numbers(rows, CheckpointState.COMPLETE)
    unconfirmed = _numbers(rows, CheckpointState.UNCONFIRMED)
    torn = _numbers(rows, CheckpointState.TORN)
    # Once all ranks of an attempt have started, no node reads what it began with any more.
    starting = Attempt.objects.filter(ended_at=None).exclude(run__state=RunState.RUNNING)
    in_use = starting.exclude(restores=None).values("restores")
    surplus = rows.filter(Q(number__in=[*complete[keep:], *unconfirmed[keep:], *torn[MAX_TORN:]])).exclude(
        pk__in=in_use
    )
    is_gone = Q(checkpoint__in=surplus) | Q(checkpoint__run=run, checkpoint__state=CheckpointState.TORN)
    delete_rows(CheckpointFile.objects.filter(is_gone))
    delete_rows(StoredCheckpointFile.objects.filter(is_gone))
    # What was copied from another run lies in that one's folder.
    in_store = surplus.exclude(store_path="").exclude(datastore=None).exclude(attempt=0)
    in_store.update(state=CheckpointState.DISCARDED)
    surplus.exclude(state=CheckpointState.DISCARDED).delete()


def _numbers(rows: QuerySet[Checkpoint], state: CheckpointState) -> list[int]:
    """Returns the numbers of those in that state, the newest first."""
    return list(rows.filter(state=state).order_by("-number").values_list("number", flat=True))
