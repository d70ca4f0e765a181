"""Reads the newest complete bucket of each node."""

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
MAX_AGE_S = 60
BATCH = 500
MeanAndMax = tuple[float, float]


@dataclass(frozen=True)
class LatestBucket:
    """The newest bucket of a node. `host` and `gpus` (by UUID): metric -> (mean, max) over the bucket that
    begins at `start`. Unknown metrics are absent."""

    start: int
    host: Mapping[str, MeanAndMax] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, MeanAndMax]] = field(default_factory=dict)


def for_nodes(nodes: Iterable[Node], now: float | None = None) -> dict[int, LatestBucket]:
    """Returns node id -> its newest bucket that ended at most MAX_AGE_S ago; nodes without one are absent."""
    since = (time.time() if now is None else now) - MAX_AGE_S - BUCKET_S
    newest: dict[int, int] = {}
    ids = [node.pk for node in nodes]
    recent = (
        TelemetrySlice.objects.filter(start__gte=since, node__in=ids)
        if len(ids) <= BATCH
        else (TelemetrySlice.objects.filter(start__gte=since))
    )
    for pk, node in recent.order_by("start").values_list("pk", "node"):
        newest[node] = pk
    slice_ids = [newest[node] for node in ids if node in newest]
    latest: dict[int, LatestBucket] = {}
    for first in range(0, len(slice_ids), BATCH):
        rows = TelemetrySlice.objects.filter(pk__in=slice_ids[first : first + BATCH])
        for node, start, data in rows.values_list("node", "start", "data"):
            try:
                latest[node] = _latest(start, slice_parts(bytes(data)))
            except PackingError as error:
                log.error("The slice of node %s at %s cannot be read: %s", node, start, error)
    return latest


def _latest(start: int, parts: Iterable[SlicePart]) -> LatestBucket:
    by_subject: dict[str, dict[str, MeanAndMax]] = {}
    for part in parts:
        for subject, means, peaks in zip(part.subjects, part.mean.tolist(), part.max.tolist(), strict=True):
            pairs = zip(part.metrics, means, peaks, strict=True)
            by_subject.setdefault(subject, {}).update(
                {name: (mean, maximum) for name, mean, maximum in pairs if not math.isnan(mean)}
            )
    return LatestBucket(start, by_subject.pop(HOST, {}), by_subject)
