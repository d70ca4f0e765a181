"""What a run is, beside what it has logged: each attribute as Django asks the database for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat, Now

from jobs.models import Run
from jobs.states import ACTIVE, WAITING, Reason, RunState
from tracking.models import UsageEntry

STATUSES: dict[str, frozenset[RunState]] = {
    "SCHEDULED": WAITING,
    "RUNNING": ACTIVE - WAITING,
    "FINISHED": frozenset({RunState.COMPLETED}),
    "FAILED": frozenset({RunState.FAILED}),
    "KILLED": frozenset({RunState.CANCELED}),
}
"""MLflow's words for our states."""
GROUPS: dict[str, frozenset[RunState]] = {
    "active": ACTIVE,
    "waiting": WAITING,
    "ended": frozenset(RunState) - ACTIVE,
}
"""Words that may stand for a state in a filter, beside the states themselves."""
KINDS = ("job", "external")
FRAMEWORKS = ("single", "pytorch", "mpi", "tensorflow")
ARTIFACT_ROOT = "mlflow-artifacts:/"
LONGEST_S = 10.0**10

COLUMNS: dict[str, str] = {
    "run_id": "pk",
    "run_name": "display_name",
    "user_id": "created_by__username",
    "experiment": "experiment__name",
    "number": "number",
    "submitted": "created_at",
    "end_time": "finished_at",
    "priority": "priority",
    "attempt": "attempt",
    "parent": "parent_id",
    "state": "state",
    "status": "state",
    "reason": "reason",
    "kind": "kind",
}
"""Attributes that are columns."""
NULLABLE = frozenset({"user_id", "end_time", "parent", "cluster", "environment", "duration", "gpu_hours"})


def _used() -> Subquery:
    seconds = (
        UsageEntry.objects.filter(run=OuterRef("pk"))
        .order_by()
        .values("run")
        .annotate(sum=Sum("gpu_seconds"))
    )
    return Subquery(
        (seconds.annotate(hours=F("sum") / 3600.0)).values("hours"), output_field=models.FloatField()
    )


def _duration() -> models.ExpressionWrapper[Any]:
    return models.ExpressionWrapper(
        Coalesce("finished_at", Now()) - F("started_at"), output_field=models.DurationField()
    )


def _experiment_id() -> Cast:
    return Cast("experiment_id", models.CharField())


def _of_spec(path: str) -> Cast:
    # A cast, or Django compares JSON with JSON.
    return Cast(KT(f"spec__{path}"), models.TextField())


MADE: dict[str, Callable[[], Combinable]] = {
    "start_time": lambda: Coalesce("started_at", "created_at"),
    "artifact_uri": lambda: Concat(
        Value(ARTIFACT_ROOT), _experiment_id(), Value("/"), "id", Value("/artifacts")
    ),
    "experiment_id": _experiment_id,
    "cluster": lambda: _of_spec("resources__cluster"),
    "environment": lambda: _of_spec("environment__name"),
    "framework": lambda: Coalesce(_of_spec("distribution__type"), Value("single", models.TextField())),
    "duration": _duration,
    "gpu_hours": _used,
}
"""Attributes that are made of columns."""


def column(name: str) -> str:
    """How a filter or an order names the attribute; `made` first where that is in MADE."""
    return COLUMNS.get(name) or f"made_{name}"


def made(names: Iterable[str]) -> dict[str, Any]:
    """For QuerySet.alias: everything that `column` may name."""
    return {column(name): MADE[name]() for name in names if name in MADE}


def stored(name: str, value: object) -> Any:
    """A value of a filter as the column holds it: times in ms, lengths of time in seconds."""
    if name in ("start_time", "end_time", "submitted"):
        return _moment(float(value))  # type: ignore[arg-type]
    if name == "duration":
        return timedelta(seconds=max(-LONGEST_S, min(LONGEST_S, float(value))))  # type: ignore[arg-type]
    return value


def words(name: str) -> dict[str, frozenset[str]]:
    """Of an attribute that has few values: each word that may be written, and the stored values that it
    stands for."""
    if name == "status":
        return {word: frozenset(states) for word, states in STATUSES.items()}
    if name == "state":
        return {state.value: frozenset({state.value}) for state in RunState}
    known = {"reason": [reason.value for reason in Reason], "kind": KINDS, "framework": FRAMEWORKS}[name]
    return {word: frozenset({word}) for word in known}


def flag(name: str, user_id: int | None) -> Q:
    """Where it is true."""
    if name == "archived":
        return Q(archived_at__isnull=False)
    if name == "pinned":
        return Q(pinned=True)
    if user_id is None:
        return Q(pk__in=())
    return Q(created_by_id=user_id) if name == "mine" else Q(pk__in=_starred(user_id))


def _starred(user_id: int) -> Any:
    return Run.objects.filter(stars__user_id=user_id).order_by().values("pk")


def _moment(ms: float) -> datetime:
    first, last = -62_135_596_800_000, 253_402_300_799_000
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=max(first, min(last, ms)))
