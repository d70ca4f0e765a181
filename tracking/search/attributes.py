"""Attributes of runs (state, duration, cluster, ...) as Django query expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Concat, Now
from django.db.models.sql.compiler import SQLCompiler

from jobs.models import Run
from jobs.states import ACTIVE, WAITING, Reason, RunKind, RunState
from tracking.models import UsageEntry
from trainhub_launch.frameworks import FRAMEWORKS, SINGLE

# States of runs by MLflow's status.
STATUSES: dict[str, frozenset[RunState]] = {
    "SCHEDULED": WAITING,
    "RUNNING": ACTIVE - WAITING,
    "FINISHED": frozenset({RunState.COMPLETED}),
    "FAILED": frozenset({RunState.FAILED}),
    "KILLED": frozenset({RunState.CANCELED}),
}
# Additional words for groups of states in filters.
GROUPS: dict[str, frozenset[RunState]] = {
    "active": ACTIVE,
    "waiting": WAITING,
    "ended": frozenset(RunState) - ACTIVE,
}
ARTIFACT_ROOT = "mlflow-artifacts:/"
# About 317 years. A filter may name any number, and a much larger one would overflow the timedelta.
MAX_DURATION_S = 10.0**10

# Attributes that are stored in a column, by name.
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
# Attributes that a run may lack. The compiler excludes such runs from every comparison, also from `!=`.
NULLABLE = frozenset({"user_id", "end_time", "parent", "cluster", "environment", "duration", "gpu_hours"})


def _gpu_hours() -> Subquery:
    seconds = (
        UsageEntry.objects.filter(run=OuterRef("pk"))
        .order_by()
        .values("run")
        .annotate(sum=Sum("gpu_seconds"))
    )
    return Subquery(
        (seconds.annotate(hours=F("sum") / 3600.0)).values("hours"), output_field=models.FloatField()
    )


class TimeDifference(models.Func):
    """The first of two times less the second. In SQLite it is exact to a millisecond: Django's own difference
    calls Python for each row, which takes most of the time of a search."""

    template, arg_joiner, arity = "(%(expressions)s)", " - ", 2

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        milliseconds = "(CAST(ROUND((JULIANDAY(%(expressions)s)) * 86400000) AS INTEGER) * 1000)"
        return self.as_sql(compiler, connection, template=milliseconds, arg_joiner=") - JULIANDAY(")


def _duration() -> TimeDifference:
    # A run that has not ended has lasted until now; one that has not started has no duration.
    return TimeDifference(Coalesce("finished_at", Now()), "started_at", output_field=models.DurationField())


def _experiment_id() -> Cast:
    # MLflow's clients compare experiment ids as text.
    return Cast("experiment_id", models.CharField())


def _spec_value(path: str) -> Cast:
    # Without the cast Django would compare JSON with JSON.
    return Cast(KT(f"spec__{path}"), models.TextField())


# Attributes that are computed from columns, by name.
COMPUTED: dict[str, Callable[[], Combinable]] = {
    "start_time": lambda: Coalesce("started_at", "created_at"),
    "artifact_uri": lambda: Concat(
        Value(ARTIFACT_ROOT), _experiment_id(), Value("/"), "id", Value("/artifacts")
    ),
    "experiment_id": _experiment_id,
    "cluster": lambda: _spec_value("resources__cluster"),
    "environment": lambda: _spec_value("environment__name"),
    "framework": lambda: Coalesce(_spec_value("distribution__type"), Value(SINGLE, models.TextField())),
    "duration": _duration,
    "gpu_hours": _gpu_hours,
}


def column_name(name: str) -> str:
    """Returns the name of the attribute in queries; a computed one also needs the alias of
    `computed_columns`."""
    return COLUMNS.get(name) or f"computed_{name}"


def computed_columns(names: Iterable[str]) -> dict[str, object]:
    """Returns the keyword arguments of QuerySet.alias for the computed attributes among `names`."""
    return {column_name(name): COMPUTED[name]() for name in names if name in COMPUTED}


def column_value(name: str, value: object) -> object:
    """Returns a filter's value in the column's type: datetimes from Unix ms, timedeltas from seconds."""
    if name in ("start_time", "end_time", "submitted"):
        return _datetime(float(value))  # type: ignore[arg-type]
    if name == "duration":
        seconds = float(value)  # type: ignore[arg-type]
        return timedelta(seconds=max(-MAX_DURATION_S, min(MAX_DURATION_S, seconds)))
    return value


def word_values(name: str) -> dict[str, frozenset[str]]:
    """Returns the allowed words of an attribute with few values, and the stored values that each stands
    for."""
    if name == "status":
        return {word: frozenset(states) for word, states in STATUSES.items()}
    if name == "state":
        return {state.value: frozenset({state.value}) for state in RunState}
    allowed: dict[str, Iterable[str]] = {"reason": Reason, "kind": RunKind, "framework": FRAMEWORKS}
    return {word: frozenset({word}) for word in map(str, allowed[name])}


def _starred(user_id: int) -> Q:
    return Q(pk__in=Run.objects.filter(stars__user_id=user_id).order_by().values("pk"))


# Flags that are the same for everybody, and those that differ by the user, by name.
FLAGS: dict[str, Q] = {"archived": Q(archived_at__isnull=False), "pinned": Q(pinned=True)}
PERSONAL_FLAGS: dict[str, Callable[[int], Q]] = {
    "mine": lambda user_id: Q(created_by_id=user_id),
    "starred": _starred,
}


def flag_condition(name: str, user_id: int | None) -> Q:
    """Returns the condition for runs whose flag is true; `user_id` None matches no `mine` and no
    `starred`."""
    if name in FLAGS:
        return FLAGS[name]
    return PERSONAL_FLAGS[name](user_id) if user_id is not None else Q(pk__in=())


def _datetime(ms: float) -> datetime:
    # Unix milliseconds of the years 1 and 9999, the limits of Python's datetime; a filter may name any
    # number.
    first, last = -62_135_596_800_000, 253_402_300_799_000
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=max(first, min(last, ms)))
