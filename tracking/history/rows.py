"""Builds the rows of a page with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Sum

from jobs import causes
from jobs.models import Run, RunTag
from jobs.retention import run_purge
from jobs.states import ACTIVE, RunKind, RunState
from tracking.history.cell_filters import CellFilters
from tracking.history.cells import SPEC_ATTRIBUTES, CellContent, LoggedValues, cell_content
from tracking.history.columns import TableColumn
from tracking.models import Metric, Param, Star, UsageEntry
from tracking.search.tree import Key
from tracking.search.vocabulary import KeyKind
from workspaces.models import User


@dataclass(frozen=True)
class HistoryCell:
    """`narrow` is the condition that narrows the table to the cell's value, without the column's key; "" if
    that is not possible or would change nothing."""

    column: TableColumn
    content: CellContent
    narrow: str

    @property
    def title(self) -> str:
        """The full text, unless the page can take it from the condition."""
        is_in_condition = self.column.is_number and self.narrow.endswith(self.content.title)
        return "" if is_in_condition else self.content.title


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

    @property
    def actions(self) -> str:
        """The name in SAMPLES of the actions that the run has now."""
        if self.run.kind == RunKind.EXTERNAL:
            return "external"
        if self.run.state == RunState.CANCEL_REQUESTED:
            return "canceling"
        return "active" if self.run.state in ACTIVE else "ended"


# A run for each set of actions. Pages have these actions once, for run 0, and copy them into the row in use.
SAMPLES = {
    "active": Run(number=0, kind=RunKind.JOB, state=RunState.RUNNING),
    "canceling": Run(number=0, kind=RunKind.JOB, state=RunState.CANCEL_REQUESTED),
    "ended": Run(number=0, kind=RunKind.JOB, state=RunState.COMPLETED),
    "external": Run(number=0, kind=RunKind.EXTERNAL, state=RunState.COMPLETED),
}


def build_rows(
    ids: Sequence[str], columns: Sequence[TableColumn], user: User, filters: CellFilters
) -> list[HistoryRow]:
    """Returns the rows in the order of `ids`, with a fixed number of queries."""
    keys = [column.key for column in columns]
    logged = load_logged_values(ids, keys)
    starred = set(Star.objects.filter(user=user, run__in=ids).values_list("run_id", flat=True))
    children = Run.objects.filter(parent__in=ids, deleted_at=None).order_by().values("parent")
    child_count = dict(children.annotate(count=Count("pk")).values_list("parent_id", "count"))
    return [
        HistoryRow(
            run,
            [_history_cell(run, column, logged, filters) for column in columns],
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


def _history_cell(run: Run, column: TableColumn, logged: LoggedValues, filters: CellFilters) -> HistoryCell:
    content = cell_content(run, column.key, logged)
    narrow = filters.rest_of(content.filter_text, column.text) if content.filter_text else ""
    return HistoryCell(column, content, narrow)
