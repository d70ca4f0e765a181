"""The newest whole bucket of each node."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusters.models import Node, TelemetrySlice
from clusters.telemetry.slice_codec import PackingError, SlicePart, slice_parts
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
FRESH_S = 60
BATCH = 500
Pair = tuple[float, float]


@dataclass(frozen=True)
class LatestBucket:
    """`host` and `gpus` (by UUID): metric -> (mean, max) over the bucket that begins at `start`. Absent = not
    known."""

    start: int
    host: Mapping[str, Pair] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)


def for_nodes(nodes: Iterable[Node], now: float | None = None) -> dict[int, LatestBucket]:
    """Node id -> its newest bucket that ended at most FRESH_S ago; nodes without one are absent."""
    since = (time.time() if now is None else now) - FRESH_S - BUCKET_S
    newest: dict[int, int] = {}
    ids = [node.pk for node in nodes]
    recent = (
        TelemetrySlice.objects.filter(start__gte=since, node__in=ids)
        if len(ids) <= BATCH
        else (TelemetrySlice.objects.filter(start__gte=since))
    )
    for pk, node in recent.order_by("start").values_list("pk", "node"):
        newest[node] = pk
    wanted = [newest[node] for node in ids if node in newest]
    found: dict[int, LatestBucket] = {}
    for first in range(0, len(wanted), BATCH):
        rows = TelemetrySlice.objects.filter(pk__in=wanted[first : first + BATCH])
        for node, start, data in rows.values_list("node", "start", "data"):
            try:
                found[node] = _latest(start, slice_parts(bytes(data)))
            except PackingError as error:
                log.error("What node %s measured at %s is not shown: %s", node, start, error)
    return found


def _latest(start: int, parts: Iterable[SlicePart]) -> LatestBucket:
    told: dict[str, dict[str, Pair]] = {}
    for part in parts:
        for subject, means, peaks in zip(part.subjects, part.mean.tolist(), part.max.tolist(), strict=True):
            pairs = zip(part.metrics, means, peaks, strict=True)
            told.setdefault(subject, {}).update(
                {name: (mean, most) for name, mean, most in pairs if not math.isnan(mean)}
            )
    return LatestBucket(start, told.pop(HOST, {}), told)
