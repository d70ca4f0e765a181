"""Builds the rows of a page with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from jobs import causes
from jobs.models import Run, RunTag
from jobs.retention import run_purge
from tracking.history.cells import SPEC_ATTRIBUTES, CellContent, LoggedValues, cell_content
from tracking.history.columns import TableColumn
from tracking.models import Metric, Param, Star, UsageEntry
from tracking.search.tree import Key
from tracking.search.vocabulary import KeyKind
from workspaces.models import User


@dataclass(frozen=True)
class HistoryCell:
    """`address` is the table filtered by this cell's value; empty if that is not possible."""

    column: TableColumn
    content: CellContent
    address: str


@dataclass(frozen=True)
class HistoryRow:
    """A row of the table. `child_count` counts the run's child runs; `parent_number` is the number of its
    parent; `due_at` is the time of its purge if it is deleted."""

    run: Run
    cells: list[HistoryCell]
    is_starred: bool
    child_count: int
    parent_number: int | None
    due_at: datetime | None


def build_rows(
    ids: Sequence[str], columns: Sequence[TableColumn], user: User, filter_link: object
) -> list[HistoryRow]:
    """Returns the rows in the order of `ids`. `filter_link` returns the table's URL with one more
    condition."""
    keys = [column.key for column in columns]
    logged = load_logged_values(ids, keys)
    starred = set(Star.objects.filter(user=user, run__in=ids).values_list("run_id", flat=True))
    children = Run.objects.filter(parent__in=ids, deleted_at=None).order_by().values("parent")
    child_count = dict(children.annotate(count=Count("pk")).values_list("parent_id", "count"))
    return [
        HistoryRow(
            run,
            [_history_cell(run, column, logged, filter_link) for column in columns],
            run.pk in starred,
            child_count.get(run.pk, 0),
            run.parent.number if run.parent else None,
            run_purge.due_at(run.deleted_at) if run.deleted_at else None,
        )
        for run in _runs(ids, keys)
    ]


def load_logged_values(ids: Sequence[str], keys: Iterable[Key]) -> LoggedValues:
    values: dict[tuple[str, Key], object] = {}
    key_list = list(keys)
    for part in {key.part for key in key_list if key.kind is KeyKind.METRIC}:
        names = [key.name for key in key_list if key.kind is KeyKind.METRIC and key.part == part]
        rows = Metric.objects.filter(run_id__in=ids, key__in=names).values_list(
            "run_id", "key", f"{part}_value"
        )
        for run, name, value in rows:
            values[run, Key(KeyKind.METRIC, name, part)] = value
    for kind, model in ((KeyKind.PARAM, Param), (KeyKind.TAG, RunTag)):
        names = [key.name for key in key_list if key.kind is kind]
        texts = model.objects.filter(run_id__in=ids, key__in=names) if names else model.objects.none()
        for run, name, text in texts.values_list("run_id", "key", "short"):
            values[run, Key(kind, name)] = text
    return LoggedValues(values, _gpu_hours(ids) if Key(KeyKind.ATTRIBUTE, "gpu_hours") in key_list else {})


def _gpu_hours(ids: Sequence[str]) -> dict[str, float]:
    usage = (
        UsageEntry.objects.filter(run_id__in=ids).order_by().values("run_id").annotate(sum=Sum("gpu_seconds"))
    )
    return {run: seconds / 3600 for run, seconds in usage.values_list("run_id", "sum")}


def _runs(ids: Sequence[str], keys: Sequence[Key]) -> list[Run]:
    needs_spec = any(key.kind is KeyKind.ATTRIBUTE and key.name in SPEC_ATTRIBUTES for key in keys)
    query = causes.annotate_lines(Run.objects.filter(pk__in=ids)).select_related(
        "experiment", "created_by", "parent"
    )
    deferred = [
        "preview",
        "parent__preview",
        "parent__spec",
        "parent__facts",
        *([] if needs_spec else ["spec"]),
    ]
    by_id = {run.pk: run for run in query.defer(*deferred)}
    return [by_id[run] for run in ids if run in by_id]


def _history_cell(run: Run, column: TableColumn, logged: LoggedValues, filter_link: Any) -> HistoryCell:
    content = cell_content(run, column.key, logged)
    return HistoryCell(column, content, filter_link(content.filter_text) if content.filter_text else "")
