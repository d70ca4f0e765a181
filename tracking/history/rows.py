"""The rows of a page: the same few queries for one run or fifty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from jobs import causes
from jobs.models import Run, RunTag
from jobs.retention import run_purge
from tracking.history.cells import SPEC, Cell, Logged, cell
from tracking.history.columns import Column
from tracking.models import Metric, Param, Star, UsageEntry
from tracking.search.tree import Key
from tracking.search.vocabulary import Kind
from workspaces.models import User


@dataclass(frozen=True)
class ShownCell:
    """`address`: the same table, narrowed to runs like this one in this column; empty where that makes no
    sense."""

    column: Column
    cell: Cell
    address: str


@dataclass(frozen=True)
class Row:
    """`parts`: how many runs are part of it. `whole`: what it is part of itself. `due_at`: when it will be
    purged."""

    run: Run
    cells: list[ShownCell]
    is_starred: bool
    parts: int
    whole: int | None
    due_at: datetime | None


def rows(ids: Sequence[str], columns: Sequence[Column], who: User, narrow: Any) -> list[Row]:
    """In the order of `ids`. `narrow`: a filter to the address of the table with it."""
    keys = [column.key for column in columns]
    logged = logged_by(ids, keys)
    starred = set(Star.objects.filter(user=who, run__in=ids).values_list("run_id", flat=True))
    of = Run.objects.filter(parent__in=ids, deleted_at=None).order_by().values("parent")
    parts = dict(of.annotate(count=Count("pk")).values_list("parent_id", "count"))
    return [
        Row(
            run,
            [_shown(run, column, logged, narrow) for column in columns],
            run.pk in starred,
            parts.get(run.pk, 0),
            run.parent.number if run.parent else None,
            run_purge.due_at(run.deleted_at) if run.deleted_at else None,
        )
        for run in _runs(ids, keys)
    ]


def logged_by(ids: Sequence[str], keys: Iterable[Key]) -> Logged:
    values: dict[tuple[str, Key], Any] = {}
    wanted = list(keys)
    for part in {key.part for key in wanted if key.kind is Kind.METRIC}:
        names = [key.name for key in wanted if key.kind is Kind.METRIC and key.part == part]
        found = Metric.objects.filter(run_id__in=ids, key__in=names).values_list(
            "run_id", "key", f"{part}_value"
        )
        for run, name, value in found:
            values[run, Key(Kind.METRIC, name, part)] = value
    for kind, model in ((Kind.PARAM, Param), (Kind.TAG, RunTag)):
        names = [key.name for key in wanted if key.kind is kind]
        texts = model.objects.filter(run_id__in=ids, key__in=names) if names else model.objects.none()
        for run, name, text in texts.values_list("run_id", "key", "short"):
            values[run, Key(kind, name)] = text
    return Logged(values, _gpu_hours(ids) if Key(Kind.ATTRIBUTE, "gpu_hours") in wanted else {})


def _gpu_hours(ids: Sequence[str]) -> dict[str, float]:
    used = (
        UsageEntry.objects.filter(run_id__in=ids).order_by().values("run_id").annotate(sum=Sum("gpu_seconds"))
    )
    return {run: seconds / 3600 for run, seconds in used.values_list("run_id", "sum")}


def _runs(ids: Sequence[str], keys: Sequence[Key]) -> list[Run]:
    needs_spec = any(key.kind is Kind.ATTRIBUTE and key.name in SPEC for key in keys)
    found = causes.with_lines(Run.objects.filter(pk__in=ids)).select_related(
        "experiment", "created_by", "parent"
    )
    hidden = [
        "preview",
        "parent__preview",
        "parent__spec",
        "parent__facts",
        *([] if needs_spec else ["spec"]),
    ]
    known = {run.pk: run for run in found.defer(*hidden)}
    return [known[run] for run in ids if run in known]


def _shown(run: Run, column: Column, logged: Logged, narrow: Any) -> ShownCell:
    found = cell(run, column.key, logged)
    return ShownCell(column, found, narrow(found.meets) if found.meets else "")
