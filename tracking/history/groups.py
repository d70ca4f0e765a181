"""Runs grouped by params, tags or attributes, with the mean and spread of their numbers (for seeds)."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from jobs.display.text import duration
from jobs.models import Run
from tracking.history.cells import LoggedValues
from tracking.history.columns import TableColumn
from tracking.history.number_format import mean_and_spread, spread_figure
from tracking.history.rows import load_logged_values
from tracking.history.table_query import TableQuery
from tracking.search import find_run_ids, parse_order
from tracking.search.tree import Comparison, Key, quote
from tracking.search.vocabulary import KeyKind
from workspaces.access import Principal

# The newest runs that are grouped, limited so that a page takes about a second.
MAX_RUNS = 5_000
MAX_GROUPS = 200
BATCH_SIZE = 2_000
NUMERIC_ATTRIBUTES = ("duration", "gpu_hours")
DURATION = Key(KeyKind.ATTRIBUTE, "duration")


@dataclass(frozen=True)
class GroupMean:
    """`text` is mean ± standard deviation; `run_count` is the number of runs with a value, if that is not the
    whole group."""

    column: TableColumn
    text: str = ""
    title: str = ""
    run_count: int | None = None


@dataclass(frozen=True)
class RunGroup:
    """`values` are the common values of the keys, None for runs without the key; `address` is a table with
    only these runs."""

    values: tuple[str | None, ...]
    count: int
    means: list[GroupMean]
    address: str
    sorted_by: float | None = None

    @property
    def key(self) -> str:
        """A short name of the group that stays when the order of the groups changes."""
        return hashlib.sha256(self.address.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class GroupedRuns:
    """The groups of a table. `runs` is the number of grouped runs; `is_cut` says that there are more than
    MAX_RUNS; `omitted` is the number of groups that are not shown."""

    groups: list[RunGroup]
    runs: int
    is_cut: bool
    omitted: int


def group_runs(
    table_query: TableQuery,
    keys: Sequence[Key],
    columns: Sequence[TableColumn],
    principal: Principal,
    filter_link: Callable[[str], str],
) -> GroupedRuns:
    """Groups the newest MAX_RUNS runs of the query by their values of `keys`. Raises FilterError."""
    ids = find_run_ids(table_query.run_query(principal), (), limit=MAX_RUNS + 1)
    is_cut, ids = len(ids) > MAX_RUNS, ids[:MAX_RUNS]
    numeric = [
        column
        for column in columns
        if column.key.kind is KeyKind.METRIC or column.key.name in NUMERIC_ATTRIBUTES
    ]
    order = parse_order(table_query.order[0]) if table_query.order else None
    needed = {column.key for column in numeric} | ({order.key} if order else set())
    table = _table(ids, [*keys, *needed])
    members: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for run in ids:
        members[tuple(table.get((run, key)) for key in keys)].append(run)
    groups = [
        RunGroup(
            values,
            len(runs),
            [_mean(column, table, runs) if column in numeric else GroupMean(column) for column in columns],
            filter_link(_condition(keys, values)),
            _average(table, runs, order.key) if order else None,
        )
        for values, runs in members.items()
    ]
    groups.sort(key=lambda group: _rank(group, descending=order is None or order.descending))
    return GroupedRuns(groups[:MAX_GROUPS], len(ids), is_cut, max(0, len(groups) - MAX_GROUPS))


ValueTable = dict[tuple[str, Key], Any]


def _table(ids: Sequence[str], keys: Sequence[Key]) -> ValueTable:
    table: ValueTable = {}
    for start in range(0, len(ids), BATCH_SIZE):
        batch = ids[start : start + BATCH_SIZE]
        logged = load_logged_values(batch, keys)
        table.update(logged.values)
        table.update(_attributes(batch, [key for key in keys if key.kind is KeyKind.ATTRIBUTE], logged))
    return table


def _attributes(ids: Sequence[str], keys: Sequence[Key], logged: LoggedValues) -> ValueTable:
    table: ValueTable = {
        (run, key): hours
        for key in keys
        if key.name == "gpu_hours"
        for run, hours in logged.gpu_hours.items()
    }
    if not keys:
        return table
    now = timezone.now()
    rows = Run.objects.filter(pk__in=ids).values_list(
        "pk", "experiment__name", "state", "created_by__username", "number", "started_at", "finished_at"
    )
    for run, experiment, state, user, number, started_at, finished_at in rows:
        elapsed = ((finished_at or now) - started_at).total_seconds() if started_at else None
        values = {
            "experiment": experiment,
            "state": state,
            "user_id": user,
            "number": number,
            "duration": elapsed,
        }
        table.update({(run, key): values[key.name] for key in keys if values.get(key.name) is not None})
    return table


def _mean(column: TableColumn, table: ValueTable, runs: Sequence[str]) -> GroupMean:
    values = [float(value) for run in runs if (value := table.get((run, column.key))) is not None]
    if not values:
        return GroupMean(column)
    mean, spread = mean_and_spread(values)
    title = (
        f"mean {mean!r}"
        + ("" if spread is None else f", standard deviation {spread!r}")
        + f", of {len(values)} runs"
    )
    text = _duration_spread(mean, spread) if column.key == DURATION else spread_figure(mean, spread)
    return GroupMean(column, text, title, len(values) if len(values) < len(runs) else None)


def _duration_spread(mean: float, spread: float | None) -> str:
    return duration(mean) if spread is None else f"{duration(mean)} ± {duration(spread)}"


def _average(table: ValueTable, runs: Sequence[str], key: Key) -> float | None:
    # An order by texts has no mean; those groups are sorted by their size.
    values = [value for run in runs if isinstance(value := table.get((run, key)), int | float)]
    return mean_and_spread(values)[0] if values else None


def _rank(group: RunGroup, *, descending: bool) -> tuple[bool, float, int, tuple[str, ...]]:
    value = group.sorted_by
    missing = value is None or math.isnan(value)
    number = 0.0 if value is None or missing else value
    return (
        missing,
        -number if descending else number,
        -group.count,
        tuple(text or "" for text in group.values),
    )


def _condition(keys: Sequence[Key], values: Sequence[str | None]) -> str:
    parts = []
    for key, value in zip(keys, values, strict=True):
        if value is None:
            parts.append(f"{key} IS NULL")
        elif len(value) >= 200:
            # Only the start of a long value is loaded.
            escaped = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            parts.append(f"{key} LIKE {quote(escaped + '%')}")
        else:
            parts.append(str(Comparison(key, "=", value)))
    return " AND ".join(parts)
