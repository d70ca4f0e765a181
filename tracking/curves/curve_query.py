"""Query parameters for curves: metrics, axis, span, resolution and smoothing. Errors name the parameter and
its valid values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from clusters.api.telemetry_query import read_time
from trainhub_launch.errors import SpecError

MAX_KEYS = 200
DEFAULT_PIXELS = 800
MAX_PIXELS = 10_000
MAX_SMOOTHING = 0.999


class Axis(StrEnum):
    """`STEP`: as logged; `TIME`: Unix seconds; `RELATIVE`: seconds since the start of the run; `METRIC`:
    the values of another metric."""

    STEP = "step"
    TIME = "time"
    RELATIVE = "relative"
    METRIC = "metrics"


# An axis over another metric is written `metrics.` and its key, as in the filter of the run table.
METRIC_PREFIX = f"{Axis.METRIC}."

_UNITS = {
    Axis.STEP: "a step",
    Axis.RELATIVE: "seconds since the start of the run",
    Axis.METRIC: "a value of the metric on the axis",
}
SERIES = [
    OpenApiParameter("keys", str, description=f"Keys of metrics, comma-separated; at most {MAX_KEYS}."),
    OpenApiParameter(
        "key",
        str,
        many=True,
        description="The key of one metric, which may contain commas. The parameter may be repeated.",
    ),
    OpenApiParameter(
        "axis",
        str,
        description=(
            "The unit of x, `from` and `to`: `step` (the default), `time` in Unix seconds, `relative` in "
            "seconds since the start of the run, or `metrics.NAME`: the values of another metric, "
            "interpolated between the steps at which it was logged."
        ),
    ),
    OpenApiParameter(
        "from",
        str,
        description="The lowest value of x, in the unit of `axis`. A time may also be given in ISO 8601.",
    ),
    OpenApiParameter("to", str, description="The highest value of x, in the unit of `axis`."),
    OpenApiParameter(
        "pixels",
        int,
        description=(
            f"The width of the drawing in pixels, 1 to {MAX_PIXELS}; {DEFAULT_PIXELS} by default. "
            "Each pixel gets at most four points of a curve."
        ),
    ),
    OpenApiParameter(
        "smoothing",
        float,
        description=(
            f"The weight of an exponential moving average, 0 to {MAX_SMOOTHING}; 0 (the default) means none. "
            "It is computed from all points and returned besides the curve."
        ),
    ),
]


@dataclass(frozen=True)
class SeriesQuery:
    """A validated query. `start` and `end` are values on the axis; None means open. `x_key`: the metric of
    an axis of that kind, else ""."""

    keys: tuple[str, ...]
    axis: Axis
    start: float | None
    end: float | None
    pixels: int
    smoothing: float
    x_key: str = ""

    @property
    def axis_name(self) -> str:
        return f"{METRIC_PREFIX}{self.x_key}" if self.axis is Axis.METRIC else self.axis.value


def parse_query(query: QueryDict, *, extra: Collection[str] = ()) -> SeriesQuery:
    """Parses the query parameters. `extra` are names that are allowed besides those of SERIES. Raises
    SpecError."""
    check_parameters(query, {*(parameter.name for parameter in SERIES), *extra})
    axis, x_key = parse_axis("axis", query.get("axis", "") or Axis.STEP)
    start, end = (_axis_position(name, query.get(name, ""), axis) for name in ("from", "to"))
    if start is not None and end is not None and start >= end:
        raise SpecError("from", "must lie before `to`")
    return SeriesQuery(
        keys=parse_keys(query),
        axis=axis,
        start=start,
        end=end,
        pixels=_pixels(query.get("pixels", "")),
        smoothing=_smoothing(query.get("smoothing", "")),
        x_key=x_key,
    )


def parse_axis(name: str, text: str) -> tuple[Axis, str]:
    """Returns the axis, and the key of its metric or "". `name` is the field that an error names. Raises
    SpecError."""
    key = text.removeprefix(METRIC_PREFIX)
    if key != text and key:
        return Axis.METRIC, key
    if text not in (Axis.STEP, Axis.TIME, Axis.RELATIVE):
        raise SpecError(name, "must be one of step, time, relative, metrics.NAME (such as metrics.epoch)")
    return Axis(text), ""


def check_parameters(query: QueryDict, allowed: Collection[str]) -> None:
    for name in query:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(sorted(allowed))}")


def parse_keys(query: QueryDict, *, is_required: bool = True) -> tuple[str, ...]:
    parts = [part.strip() for part in query.get("keys", "").split(",")]
    keys = tuple(dict.fromkeys(key for key in (*parts, *query.getlist("key")) if key))
    if is_required and not keys:
        raise SpecError("keys", "must name at least one metric, such as keys=loss,accuracy")
    if len(keys) > MAX_KEYS:
        raise SpecError(
            "keys",
            f"may name at most {MAX_KEYS} metrics, not {len(keys)}; ask for the rest in another request",
        )
    return keys


def _axis_position(name: str, text: str, axis: Axis) -> float | None:
    if not text:
        return None
    if axis is Axis.TIME:
        return read_time(name, text, 0.0)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    # Also refuses NaN, which compares as false. Steps are 64-bit numbers.
    if not abs(value) < 2.0**63:
        raise SpecError(
            name,
            f"must be a number ({_UNITS[axis]})",
        )
    return value


def _pixels(text: str) -> int:
    if not text:
        return DEFAULT_PIXELS
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MAX_PIXELS:
        raise SpecError("pixels", f"must be a whole number from 1 to {MAX_PIXELS}")
    return int(text)


def _smoothing(text: str) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_SMOOTHING:
        raise SpecError("smoothing", f"must be a number from 0 to {MAX_SMOOTHING}")
    return value
