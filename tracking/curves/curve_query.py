"""What somebody asks of curves: which, along which axis, how fine. A refusal names the parameter and what it
may be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from clusters.api.telemetry_query import moment
from trainhub_launch.errors import SpecError

MOST_KEYS = 200
USUAL_PIXELS = 800
MOST_PIXELS = 10_000
MOST_SMOOTHING = 0.999


class Axis(StrEnum):
    """`STEP` as logged; `TIME` Unix seconds; `RELATIVE` seconds since the run began."""

    STEP = "step"
    TIME = "time"
    RELATIVE = "relative"


SERIES = [
    OpenApiParameter("keys", str, description=f"Metrics, comma-separated; at most {MOST_KEYS}."),
    OpenApiParameter("key", str, many=True, description="One metric; may be given often, and hold commas."),
    OpenApiParameter(
        "axis",
        str,
        enum=[axis.value for axis in Axis],
        description="Of x, `from` and `to`; step unless named.",
    ),
    OpenApiParameter(
        "from", str, description="Where x begins: a step, a time (Unix seconds or ISO 8601), or seconds."
    ),
    OpenApiParameter("to", str, description="Where x ends."),
    OpenApiParameter(
        "pixels", int, description=f"How wide it is drawn, 1 to {MOST_PIXELS}: at most four points for each."
    ),
    OpenApiParameter(
        "smoothing",
        float,
        description=f"0 to {MOST_SMOOTHING}: also an exponential moving average of all points.",
    ),
]


@dataclass(frozen=True)
class Asked:
    """`start`, `end`: on the axis; None: open."""

    keys: tuple[str, ...]
    axis: Axis
    start: float | None
    end: float | None
    pixels: int
    smoothing: float


def asked_of(query: QueryDict, *, takes: Collection[str] = ()) -> Asked:
    """`takes`: parameters of this address besides those of SERIES. Raises SpecError."""
    only(query, {*(parameter.name for parameter in SERIES), *takes})
    axis = query.get("axis", "") or Axis.STEP
    if axis not in set(Axis):
        raise SpecError("axis", f"must be one of {', '.join(Axis)}")
    start, end = (_place(name, query.get(name, ""), Axis(axis)) for name in ("from", "to"))
    if start is not None and end is not None and start >= end:
        raise SpecError("from", "must lie before `to`")
    return Asked(
        keys=keys_of(query),
        axis=Axis(axis),
        start=start,
        end=end,
        pixels=_pixels(query.get("pixels", "")),
        smoothing=_smoothing(query.get("smoothing", "")),
    )


def only(query: QueryDict, known: Collection[str]) -> None:
    for name in query:
        if name not in known:
            raise SpecError(name, f"is not a known parameter; known here: {', '.join(sorted(known))}")


def keys_of(query: QueryDict, *, needed: bool = True) -> tuple[str, ...]:
    listed = [part.strip() for part in query.get("keys", "").split(",")]
    found = tuple(dict.fromkeys(key for key in (*listed, *query.getlist("key")) if key))
    if needed and not found:
        raise SpecError("keys", "must name at least one metric, such as keys=loss,accuracy")
    if len(found) > MOST_KEYS:
        raise SpecError(
            "keys",
            f"may name at most {MOST_KEYS} metrics, not {len(found)}; ask for the rest in another request",
        )
    return found


def _place(name: str, text: str, axis: Axis) -> float | None:
    if not text:
        return None
    if axis is Axis.TIME:
        return moment(name, text, 0.0)
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not abs(found) < 2.0**63:
        raise SpecError(
            name, f"must be a number ({'a step' if axis is Axis.STEP else 'seconds since the run began'})"
        )
    return found


def _pixels(text: str) -> int:
    if not text:
        return USUAL_PIXELS
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MOST_PIXELS:
        raise SpecError("pixels", f"must be a whole number from 1 to {MOST_PIXELS}")
    return int(text)


def _smoothing(text: str) -> float:
    try:
        found = float(text or 0)
    except ValueError:
        found = -1.0
    if not 0 <= found <= MOST_SMOOTHING:
        raise SpecError("smoothing", f"must be a number from 0 to {MOST_SMOOTHING}")
    return found
