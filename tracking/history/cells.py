"""What stands in a cell: text, what it is in full, and the filter that it meets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.models import Run
from jobs.templatetags.runs import framework
from tracking.history.number_format import figure
from tracking.search.tree import Comparison, Key, Value
from tracking.search.vocabulary import Kind

LONGEST_SHOWN = 80
SPEC = {"framework", "cluster", "environment"}
"""Attributes that only the spec tells."""


@dataclass(frozen=True)
class Cell:
    """`shape`: how a template draws it, where not as text (time, duration); `meets`: the filter that this
    value meets."""

    text: str = ""
    title: str = ""
    shape: str = ""
    at: datetime | None = None
    meets: str = ""


@dataclass(frozen=True)
class Logged:
    """Of the runs of a page, by (run, kind of key, name): what they have logged; and their GPU-hours."""

    values: Mapping[tuple[str, Key], Any]
    gpu_hours: Mapping[str, float]


NOTHING = Cell()


def cell(run: Run, key: Key, logged: Logged) -> Cell:
    if key.kind is Kind.ATTRIBUTE:
        return ATTRIBUTES.get(key.name, _nothing)(run, key, logged)
    if (run.pk, key) not in logged.values:
        return NOTHING
    value = logged.values[run.pk, key]
    return _metric(key, value) if key.kind is Kind.METRIC else _text(key, value)


def _metric(key: Key, value: float | None) -> Cell:
    if value is None:
        return Cell("NaN", "not a number", meets=_meets(key, "=", math.nan))
    return Cell(figure(value), repr(value), meets=_meets(key, "<=" if key.part == "min" else ">=", value))


def _text(key: Key, text: str, title: str = "") -> Cell:
    if not text:
        return Cell("", "", meets=_meets(key, "=", "")) if key.kind is not Kind.ATTRIBUTE else NOTHING
    shown = text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
    # Of a long value only the beginning is at hand.
    meets = _meets(key, "=", text) if len(text) < 200 else ""
    return Cell(shown, title or (text if shown != text else ""), meets=meets)


def _meets(key: Key, operator: str, value: Value) -> str:
    return str(Comparison(key, operator, value))


def _number(run: Run, key: Key, _: Logged) -> Cell:
    value = getattr(run, key.name)
    return Cell(str(value))


def _user(run: Run, key: Key, _: Logged) -> Cell:
    return _text(key, run.created_by.username) if run.created_by else NOTHING


def _time(name: str) -> Callable[[Run, Key, Logged], Cell]:
    def shown(run: Run, _: Key, __: Logged) -> Cell:
        at = getattr(run, name)
        return Cell(shape="time", at=at) if at else NOTHING

    return shown


def _gpu_hours(run: Run, key: Key, logged: Logged) -> Cell:
    hours = logged.gpu_hours.get(run.pk)
    return (
        NOTHING
        if hours is None
        else Cell(f"{hours:.2f}" if hours < 100 else f"{hours:.0f}", meets=_meets(key, ">=", hours))
    )


def _framework(run: Run, key: Key, _: Logged) -> Cell:
    if run.kind != "job":
        return NOTHING
    word = (run.spec.get("distribution") or {}).get("type", "single")
    return Cell(framework(run), meets=_meets(key, "=", word))


def _of_spec(part: str, name: str) -> Callable[[Run, Key, Logged], Cell]:
    def shown(run: Run, key: Key, _: Logged) -> Cell:
        return _text(key, str((run.spec.get(part) or {}).get(name) or ""))

    return shown


def _nothing(_: Run, __: Key, ___: Logged) -> Cell:
    return NOTHING


ATTRIBUTES: dict[str, Callable[[Run, Key, Logged], Cell]] = {
    "number": _number,
    "attempt": _number,
    "priority": _number,
    "experiment": lambda run, key, _: _text(key, run.experiment.name),
    "kind": lambda run, key, _: _text(key, run.kind),
    "run_id": lambda run, key, _: Cell(run.pk[:8], run.pk, meets=_meets(key, "=", run.pk)),
    "user_id": _user,
    "duration": lambda *_: Cell(shape="duration"),
    "submitted": _time("created_at"),
    "end_time": _time("finished_at"),
    "gpu_hours": _gpu_hours,
    "framework": _framework,
    "cluster": _of_spec("resources", "cluster"),
    "environment": _of_spec("environment", "name"),
}
