"""Contents of table cells: text, full text, and a filter that matches the value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.display.text import framework_text
from jobs.models import Run
from jobs.states import RunKind
from tracking.history.number_format import format_number
from tracking.search.tree import Comparison, ComparisonValue, Key
from tracking.search.vocabulary import KeyKind
from trainhub_launch.frameworks import stored_framework

MAX_TEXT_LENGTH = 80
# Attributes that are only in a run's spec.
SPEC_ATTRIBUTES = {"framework", "cluster", "environment"}


@dataclass(frozen=True)
class CellContent:
    """`title` is the full text. `shape` is time or duration if the template does not render text.
    `filter_text` is a filter that the value matches."""

    text: str = ""
    title: str = ""
    shape: str = ""
    at: datetime | None = None
    filter_text: str = ""


@dataclass(frozen=True)
class LoggedValues:
    """Logged values of the runs on a page by (run id, key), and their GPU-hours by run id."""

    values: Mapping[tuple[str, Key], Any]
    gpu_hours: Mapping[str, float]


EMPTY = CellContent()


def cell_content(run: Run, key: Key, logged: LoggedValues) -> CellContent:
    if key.kind is KeyKind.ATTRIBUTE:
        return ATTRIBUTES.get(key.name, _empty)(run, key, logged)
    if (run.pk, key) not in logged.values:
        return EMPTY
    value = logged.values[run.pk, key]
    return _metric(key, value) if key.kind is KeyKind.METRIC else _text(key, value)


def _metric(key: Key, value: float | None) -> CellContent:
    if value is None:
        return CellContent("NaN", "not a number", filter_text=_filter_text(key, "=", math.nan))
    return CellContent(
        format_number(value),
        repr(value),
        filter_text=_filter_text(key, "<=" if key.part == "min" else ">=", value),
    )


def _text(key: Key, text: str, title: str = "") -> CellContent:
    # Empty params and tags are values and can be searched for; an empty attribute is a missing one.
    if not text:
        return (
            CellContent("", "", filter_text=_filter_text(key, "=", ""))
            if key.kind is not KeyKind.ATTRIBUTE
            else EMPTY
        )
    visible = text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"
    # Only the start of a long value is loaded.
    filter_text = _filter_text(key, "=", text) if len(text) < 200 else ""
    return CellContent(visible, title or (text if visible != text else ""), filter_text=filter_text)


def _filter_text(key: Key, operator: str, value: ComparisonValue) -> str:
    return str(Comparison(key, operator, value))


def _number(run: Run, key: Key, _: LoggedValues) -> CellContent:
    value = getattr(run, key.name)
    return CellContent(str(value))


def _user(run: Run, key: Key, _: LoggedValues) -> CellContent:
    return _text(key, run.created_by.username) if run.created_by else EMPTY


def _time(name: str) -> Callable[[Run, Key, LoggedValues], CellContent]:
    def render(run: Run, _: Key, __: LoggedValues) -> CellContent:
        at = getattr(run, name)
        return CellContent(shape="time", at=at) if at else EMPTY

    return render


def _gpu_hours(run: Run, key: Key, logged: LoggedValues) -> CellContent:
    hours = logged.gpu_hours.get(run.pk)
    return (
        EMPTY
        if hours is None
        else CellContent(
            f"{hours:.2f}" if hours < 100 else f"{hours:.0f}", filter_text=_filter_text(key, ">=", hours)
        )
    )


def _framework(run: Run, key: Key, _: LoggedValues) -> CellContent:
    if run.kind != RunKind.JOB:
        return EMPTY
    return CellContent(framework_text(run), filter_text=_filter_text(key, "=", stored_framework(run.spec)))


def _spec_cell(part: str, name: str) -> Callable[[Run, Key, LoggedValues], CellContent]:
    def render(run: Run, key: Key, _: LoggedValues) -> CellContent:
        return _text(key, str((run.spec.get(part) or {}).get(name) or ""))

    return render


def _empty(_: Run, __: Key, ___: LoggedValues) -> CellContent:
    return EMPTY


ATTRIBUTES: dict[str, Callable[[Run, Key, LoggedValues], CellContent]] = {
    "number": _number,
    "attempt": _number,
    "priority": _number,
    "experiment": lambda run, key, _: _text(key, run.experiment.name),
    "kind": lambda run, key, _: _text(key, run.kind),
    "run_id": lambda run, key, _: CellContent(run.pk[:8], run.pk, filter_text=_filter_text(key, "=", run.pk)),
    "user_id": _user,
    "duration": lambda *_: CellContent(shape="duration"),
    "submitted": _time("created_at"),
    "end_time": _time("finished_at"),
    "gpu_hours": _gpu_hours,
    "framework": _framework,
    "cluster": _spec_cell("resources", "cluster"),
    "environment": _spec_cell("environment", "name"),
}
