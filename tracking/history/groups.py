"""Runs grouped by what they were configured with: how many, and of each number mean and spread over them
(seeds)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from jobs.models import Run
from jobs.templatetags.formats import duration
from tracking.history.cells import Logged
from tracking.history.columns import Column
from tracking.history.number_format import mean_and_spread, spread_figure
from tracking.history.rows import logged_by
from tracking.history.table_query import Question
from tracking.search import find_run_ids, parse_order
from tracking.search.tree import Comparison, Key, quote
from tracking.search.vocabulary import Kind
from workspaces.access import Principal

MOST_RUNS = 5_000
"""The newest of these are grouped: what a page can be made of in a second."""
MOST_GROUPS = 200
AT_ONCE = 2_000
COUNTED = ("duration", "gpu_hours")
DURATION = Key(Kind.ATTRIBUTE, "duration")


@dataclass(frozen=True)
class Mean:
    """`text`: mean ± standard deviation. `of`: how many runs have the number, where that is not all of the
    group."""

    column: Column
    text: str = ""
    title: str = ""
    of: int | None = None


@dataclass(frozen=True)
class Group:
    """`address`: the table of its runs alone. `values`: by what they are together; None: they have no such
    key."""

    values: tuple[str | None, ...]
    count: int
    means: list[Mean]
    address: str
    sorted_by: float | None = None


@dataclass(frozen=True)
class Grouped:
    """`is_cut`: there are more runs than were looked at; `left_out`: more groups than are shown."""

    groups: list[Group]
    runs: int
    is_cut: bool
    left_out: int


def grouped(
    question: Question,
    keys: Sequence[Key],
    columns: Sequence[Column],
    who: Principal,
    narrow: Callable[[str], str],
) -> Grouped:
    """Raises FilterError."""
    ids = find_run_ids(question.asked(who), (), limit=MOST_RUNS + 1)
    is_cut, ids = len(ids) > MOST_RUNS, ids[:MOST_RUNS]
    counted = [column for column in columns if column.key.kind is Kind.METRIC or column.key.name in COUNTED]
    order = parse_order(question.order[0]) if question.order else None
    wanted = {column.key for column in counted} | ({order.key} if order else set())
    table = _table(ids, [*keys, *wanted])
    together: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for run in ids:
        together[tuple(table.get((run, key)) for key in keys)].append(run)
    found = [
        Group(
            values,
            len(runs),
            [_mean(column, table, runs) if column in counted else Mean(column) for column in columns],
            narrow(_condition(keys, values)),
            _average(table, runs, order.key) if order else None,
        )
        for values, runs in together.items()
    ]
    found.sort(key=lambda group: _rank(group, descending=order is None or order.descending))
    return Grouped(found[:MOST_GROUPS], len(ids), is_cut, max(0, len(found) - MOST_GROUPS))


Table = dict[tuple[str, Key], Any]


def _table(ids: Sequence[str], keys: Sequence[Key]) -> Table:
    table: Table = {}
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        logged = logged_by(some, keys)
        table.update(logged.values)
        table.update(_attributes(some, [key for key in keys if key.kind is Kind.ATTRIBUTE], logged))
    return table


def _attributes(ids: Sequence[str], keys: Sequence[Key], logged: Logged) -> Table:
    table: Table = {
        (run, key): hours
        for key in keys
        if key.name == "gpu_hours"
        for run, hours in logged.gpu_hours.items()
    }
    if not keys:
        return table
    now = timezone.now()
    found = Run.objects.filter(pk__in=ids).values_list(
        "pk", "experiment__name", "state", "created_by__username", "number", "started_at", "finished_at"
    )
    for run, experiment, state, user, number, started_at, finished_at in found:
        lasted = ((finished_at or now) - started_at).total_seconds() if started_at else None
        known = {
            "experiment": experiment,
            "state": state,
            "user_id": user,
            "number": number,
            "duration": lasted,
        }
        table.update({(run, key): known[key.name] for key in keys if known.get(key.name) is not None})
    return table


def _mean(column: Column, table: Table, runs: Sequence[str]) -> Mean:
    values = [float(value) for run in runs if (value := table.get((run, column.key))) is not None]
    if not values:
        return Mean(column)
    mean, spread = mean_and_spread(values)
    title = (
        f"mean {mean!r}"
        + ("" if spread is None else f", standard deviation {spread!r}")
        + f", of {len(values)} runs"
    )
    shown = _spans(mean, spread) if column.key == DURATION else spread_figure(mean, spread)
    return Mean(column, shown, title, len(values) if len(values) < len(runs) else None)


def _spans(mean: float, spread: float | None) -> str:
    return duration(mean) if spread is None else f"{duration(mean)} ± {duration(spread)}"


def _average(table: Table, runs: Sequence[str], key: Key) -> float | None:
    values = [value for run in runs if isinstance(value := table.get((run, key)), int | float)]
    return mean_and_spread(values)[0] if values else None


def _rank(group: Group, *, descending: bool) -> tuple[bool, float, int, tuple[str, ...]]:
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
            # Only its beginning is at hand.
            escaped = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            parts.append(f"{key} LIKE {quote(escaped + '%')}")
        else:
            parts.append(str(Comparison(key, "=", value)))
    return " AND ".join(parts)
