"""What runs were configured with, and what is known about them, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.models import Run, RunTag
from jobs.templatetags.formats import duration
from jobs.templatetags.runs import framework
from tracking.models import Param

MOST_ROWS = 1000
SHOWN_CHARACTERS = 200
NOT_SHOWN = ("mlflow.note.content", "mlflow.log-model.history")
"""Long texts and JSON that pages of their own show."""


@dataclass(frozen=True)
class Cell:
    """`text` None: the run has no such thing. `differs` from the first run's."""

    text: str | None
    whole: str
    differs: bool


@dataclass(frozen=True)
class Row:
    name: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        return any(cell.differs for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """`left_out`: rows that are alike, of which there are too many to show."""

    rows: tuple[Row, ...]
    left_out: int = 0

    @property
    def different(self) -> int:
        return sum(row.differs for row in self.rows)


def params(runs: Sequence[Run]) -> Table:
    rows = Param.objects.filter(run__in=[run.pk for run in runs])
    return _table(runs, _by_name(rows.values_list("key", "run_id", "value")))


def tags(runs: Sequence[Run]) -> Table:
    rows = RunTag.objects.filter(run__in=[run.pk for run in runs]).exclude(key__in=NOT_SHOWN)
    return _table(runs, _by_name(rows.values_list("key", "run_id", "value")))


def attributes(runs: Sequence[Run]) -> Table:
    told = {name: {run.pk: text for run in runs if (text := read(run))} for name, read in ATTRIBUTES.items()}
    return Table(tuple(_row(name, runs, values) for name, values in told.items() if values))


def _by_name(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, run_id, value in rows:
        found.setdefault(key, {})[run_id] = value
    return found


def _table(runs: Sequence[Run], values: Mapping[str, Mapping[str, str]]) -> Table:
    rows = [_row(key, runs, values[key]) for key in sorted(values, key=str.casefold)]
    if len(rows) <= MOST_ROWS:
        return Table(tuple(rows))
    kept = [row for row in rows if row.differs][:MOST_ROWS]
    return Table(tuple(kept), len(rows) - len(kept))


def _row(name: str, runs: Sequence[Run], values: Mapping[str, str]) -> Row:
    first = values.get(runs[0].pk)
    return Row(name, tuple(_cell(values.get(run.pk), first) for run in runs))


def _cell(value: str | None, first: str | None) -> Cell:
    short = value if value is None or len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]} …"
    return Cell(short, value or "", value != first)


def _began(run: Run) -> str:
    at = run.started_at or run.created_at
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S")


def _took(run: Run) -> str:
    if run.started_at is None:
        return ""
    took = (run.finished_at or timezone.now()) - run.started_at
    return duration(max(took, timedelta(0)))


def _part(*path: str) -> Callable[[Run], str]:
    def read(run: Run) -> str:
        found: Any = run.spec
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return "" if found in (None, "", []) else str(found)

    return read


def _command(run: Run) -> str:
    spec = run.spec
    words = spec.get("command") or [spec.get("script") or "", *(spec.get("arguments") or [])]
    return " ".join(word for word in words if word)


ATTRIBUTES: dict[str, Callable[[Run], str]] = {
    "State": lambda run: run.state,
    "Experiment": lambda run: run.experiment.name,
    "Started": _began,
    "Duration": _took,
    "By": lambda run: run.created_by.get_username() if run.created_by else "",
    "Distribution": framework,
    "Command": _command,
    "Cluster": _part("resources", "cluster"),
    "Nodes": _part("resources", "node_count"),
    "GPUs per node": _part("resources", "gpus_per_node"),
    "Environment": _part("environment", "name"),
    "Attempts": lambda run: str(run.attempt) if run.attempt else "",
}
