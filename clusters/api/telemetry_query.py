"""Parses the query parameters of telemetry: time span, metrics and format. Errors name the parameter and the
allowed values."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter

from clusters.telemetry import heat
from clusters.telemetry.series import MAX_POINTS
from trainhub_launch.errors import SpecError
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS

DEFAULT_SPAN_S = 3600
DEFAULT_POINTS = 300
DEFAULT_GPU_METRICS = (
    "utilization_pct",
    "memory_bandwidth_pct",
    "memory_used_bytes",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
)
DEFAULT_HOST_METRICS = (
    "cpu_pct",
    "memory_used_bytes",
    "disk_read_bytes_s",
    "disk_write_bytes_s",
    "network_tx_bytes_s",
    "network_rx_bytes_s",
)
# In the year 4147: `datetime` can represent every smaller number, and a time in milliseconds is refused.
MAX_TIME = 2.0**36
ALL = "all"

_TIME = "Unix seconds or ISO 8601 (UTC if it has no time zone)"
SPAN = [
    OpenApiParameter(
        "from",
        str,
        description=(
            f"The start of the time span: {_TIME}. Default: one hour before `to`, or for a run the start "
            "of the attempt."
        ),
    ),
    OpenApiParameter(
        "to",
        str,
        description=f"The end of the time span: {_TIME}. Default: now, or for a run the end of the attempt.",
    ),
    OpenApiParameter(
        "points",
        int,
        description=(
            f"The maximum number of points, 1 to {MAX_POINTS} (at most {heat.MAX_POINTS} for a heat map); "
            f"{DEFAULT_POINTS} by default."
        ),
    ),
    OpenApiParameter(
        "as",
        str,
        enum=["json", "csv"],
        description="The format of the response: `json` (the default), or `csv` as a file to download.",
    ),
]
METRICS = [
    OpenApiParameter(
        "metrics",
        str,
        description=(
            "The keys of GPU metrics, comma-separated (see GET /api/v1/metrics/), or `all`; by default a "
            "selection."
        ),
    ),
    OpenApiParameter(
        "host",
        str,
        description=(
            "The keys of host metrics, comma-separated (see GET /api/v1/metrics/), or `all`; by default a "
            "selection."
        ),
    ),
]


@dataclass(frozen=True)
class TelemetryQuery:
    """A parsed query of telemetry. `start`, `end`: Unix seconds; `points`: the maximum number of points."""

    start: float
    end: float
    points: int
    gpu_metrics: tuple[str, ...]
    host_metrics: tuple[str, ...]
    as_csv: bool


def read_query(
    query: Mapping[str, str],
    now: float,
    *,
    takes: Collection[str] = ("metrics", "host"),
    host: tuple[str, ...] = DEFAULT_HOST_METRICS,
    span: tuple[float, float] | None = None,
    most_points: int = MAX_POINTS,
) -> TelemetryQuery:
    """Returns the parsed query. `takes`: allowed parameters in addition to those of the span. `host` and
    `span`: defaults of the machine's metrics and of the time span. Raises SpecError."""
    allowed = {*(parameter.name for parameter in SPAN), *takes}
    for name in query:
        if name not in allowed:
            raise SpecError(name, f"is not a known parameter; known parameters: {', '.join(sorted(allowed))}")
    end = read_time("to", query.get("to", ""), span[1] if span else now)
    start = read_time("from", query.get("from", ""), span[0] if span else end - DEFAULT_SPAN_S)
    if start >= end:
        raise SpecError("from", f"must lie before `to`, which is {iso_time(end)}")
    return TelemetryQuery(
        start=start,
        end=end,
        points=_points(query.get("points", ""), most_points),
        gpu_metrics=_metrics("metrics", query.get("metrics"), GPU_KEYS, DEFAULT_GPU_METRICS),
        host_metrics=_metrics("host", query.get("host"), HOST_KEYS, host),
        as_csv=_as_csv(query.get("as", "")),
    )


def read_metric(query: Mapping[str, str]) -> str:
    """Returns the metric of a heat map. Raises SpecError."""
    return _metrics("metric", query.get("metric"), GPU_KEYS, ("utilization_pct",), exact_count=1)[0]


def read_flag(name: str, text: str) -> bool:
    if text not in ("", "0", "1"):
        raise SpecError(name, "must be 0 or 1")
    return text == "1"


def read_time(name: str, text: str, default: float) -> float:
    """Returns Unix seconds, or `default` for an empty text. Raises SpecError that names `name`."""
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = _from_iso(text)
    if not 0 <= seconds < MAX_TIME:
        raise SpecError(name, f"must be {_TIME}, such as 1795300000 or 2026-11-21T18:00:00Z")
    return seconds


def _from_iso(text: str) -> float:
    try:
        # A plus sign that was not escaped in the address arrives as a space.
        parsed = parse_datetime(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        parsed = None
    if parsed is None:
        return math.nan
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _points(text: str, max_points: int) -> int:
    if not text:
        return DEFAULT_POINTS
    # The length first, because `int` refuses thousands of digits with an error of its own.
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= max_points:
        raise SpecError("points", f"must be a whole number from 1 to {max_points}")
    return int(text)


def _metrics(
    name: str,
    text: str | None,
    available: Collection[str],
    default: tuple[str, ...],
    *,
    exact_count: int | None = None,
) -> tuple[str, ...]:
    if text is None:
        return default
    if text == ALL and exact_count is None:
        return tuple(available)
    requested = tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    unknown = [item for item in requested if item not in available]
    if unknown or (exact_count is not None and len(requested) != exact_count):
        problem = f"has no {unknown[0]!r}; it" if unknown else ""
        rule = "must be one of" if exact_count == 1 else "may be `all` or any of"
        raise SpecError(name, f"{problem} {rule} {', '.join(available)}".strip())
    return requested


def _as_csv(text: str) -> bool:
    if text not in ("", "json", "csv"):
        raise SpecError("as", "must be json or csv")
    return text == "csv"


def iso_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
