"""Tables that compare params, tags and attributes of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.display.text import duration, framework_text
from jobs.models import Run, RunTag
from tracking.models import Param

MAX_ROWS = 1000
MAX_CELL_LENGTH = 200
# Tags with long texts or JSON, which other pages show.
HIDDEN_TAGS = ("mlflow.note.content", "mlflow.log-model.history")


@dataclass(frozen=True)
class ComparisonCell:
    """`text` is the shortened value, None if the run has none; `whole` is the full one. `differs`: not equal
    to the first run's."""

    text: str | None
    whole: str
    differs: bool


@dataclass(frozen=True)
class ComparisonRow:
    name: str
    cells: tuple[ComparisonCell, ...]

    @property
    def differs(self) -> bool:
        return any(cell.differs for cell in self.cells)


@dataclass(frozen=True)
class ComparisonTable:
    """A table with a row for each name. `omitted` counts the rows that are left out because the table is too
    long; rows with equal values are left out first."""

    rows: tuple[ComparisonRow, ...]
    omitted: int = 0

    @property
    def different(self) -> int:
        return sum(row.differs for row in self.rows)


def params_table(runs: Sequence[Run]) -> ComparisonTable:
    rows = Param.objects.filter(run__in=[run.pk for run in runs])
    return _table(runs, _by_name(rows.values_list("key", "run_id", "value")))


def tags_table(runs: Sequence[Run]) -> ComparisonTable:
    rows = RunTag.objects.filter(run__in=[run.pk for run in runs]).exclude(key__in=HIDDEN_TAGS)
    return _table(runs, _by_name(rows.values_list("key", "run_id", "value")))


def attributes_table(runs: Sequence[Run]) -> ComparisonTable:
    by_name = {
        name: {run.pk: text for run in runs if (text := read(run))} for name, read in ATTRIBUTES.items()
    }
    return ComparisonTable(tuple(_row(name, runs, values) for name, values in by_name.items() if values))


def _by_name(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    by_name: dict[str, dict[str, str]] = {}
    for key, run_id, value in rows:
        by_name.setdefault(key, {})[run_id] = value
    return by_name


def _table(runs: Sequence[Run], values: Mapping[str, Mapping[str, str]]) -> ComparisonTable:
    rows = [_row(key, runs, values[key]) for key in sorted(values, key=str.casefold)]
    if len(rows) <= MAX_ROWS:
        return ComparisonTable(tuple(rows))
    # The sort is stable, so that the rows of each kind stay in the order of their names.
    visible = sorted(rows, key=lambda row: not row.differs)[:MAX_ROWS]
    return ComparisonTable(tuple(visible), len(rows) - len(visible))


def _row(name: str, runs: Sequence[Run], values: Mapping[str, str]) -> ComparisonRow:
    first = values.get(runs[0].pk)
    return ComparisonRow(name, tuple(_cell(values.get(run.pk), first) for run in runs))


def _cell(value: str | None, first: str | None) -> ComparisonCell:
    short = value if value is None or len(value) <= MAX_CELL_LENGTH else f"{value[:MAX_CELL_LENGTH]} …"
    return ComparisonCell(short, value or "", value != first)


def _started(run: Run) -> str:
    at = run.started_at or run.created_at
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S")


def _elapsed(run: Run) -> str:
    if run.started_at is None:
        return ""
    elapsed = (run.finished_at or timezone.now()) - run.started_at
    return duration(max(elapsed, timedelta(0)))


def _spec_value(*path: str) -> Callable[[Run], str]:
    def read(run: Run) -> str:
        value: Any = run.spec
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return "" if value in (None, "", []) else str(value)

    return read


def _command(run: Run) -> str:
    spec = run.spec
    words = spec.get("command") or [spec.get("script") or "", *(spec.get("arguments") or [])]
    return " ".join(word for word in words if word)


ATTRIBUTES: dict[str, Callable[[Run], str]] = {
    "State": lambda run: run.state,
    "Experiment": lambda run: run.experiment.name,
    "Started": _started,
    "Duration": _elapsed,
    "By": lambda run: run.created_by.get_username() if run.created_by else "",
    "Distribution": framework_text,
    "Command": _command,
    "Cluster": _spec_value("resources", "cluster"),
    "Nodes": _spec_value("resources", "node_count"),
    "GPUs per node": _spec_value("resources", "gpus_per_node"),
    "Environment": _spec_value("environment", "name"),
    "Attempts": lambda run: str(run.attempt) if run.attempt else "",
}
