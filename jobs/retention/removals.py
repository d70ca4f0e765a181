"""Says that retention rules have removed data of a run, wherever somebody looks for it."""

from __future__ import annotations

from django.db.models import QuerySet

from jobs.models import DataRemoval, Run
from jobs.states import DataKind
from workspaces.database.compiled_queries import compiled
from workspaces.http.problems import Problem


def removed_data(run: Run) -> list[DataRemoval]:
    """Returns what retention rules have removed of the run, or are removing."""
    return _removals(run.pk)


@compiled
def _removals(run_id: str) -> QuerySet[DataRemoval]:
    return DataRemoval.objects.filter(run_id=run_id).order_by("kind")


def removal_sentence(run: Run | str, kind: DataKind) -> str:
    """Returns that data of this kind was removed of the run, and when; "" if it was not."""
    removal = DataRemoval.objects.filter(run=run, kind=kind).first()
    return "" if removal is None else sentence_of(removal)


def raise_if_removed(run: str, kind: DataKind) -> None:
    """Raises Problem 410 if data of this kind was removed of the run with this id."""
    sentence = removal_sentence(run, kind)
    if sentence:
        raise Problem(410, "Gone", sentence)


def sentence_of(removal: DataRemoval) -> str:
    noun = DataKind(removal.kind).noun
    verb = "was" if removal.kind == DataKind.TELEMETRY else "were"
    days = f"{removal.days} day{'' if removal.days == 1 else 's'}"
    return (
        f"The {noun} of this run {verb} removed on {removal.started_at:%Y-%m-%d} by the workspace's "
        f"retention rule, {days} after its end."
    )
