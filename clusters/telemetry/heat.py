"""One metric of every GPU of many nodes, as a heat map shows it."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from django.db.models import BinaryField, F, QuerySet
from django.db.models.functions import Substr

from clusters.models import Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry.bins import Bins, Grid, grid
from clusters.telemetry.chunks import POINTS, Chunk, empty_chunk, fill, likely_bytes_needed, bytes_needed, open_chunk, span_s
from clusters.telemetry.series import step_for
from clusters.telemetry.slice_codec import SLICE_VERSION, Numbers, PackingError
from clusters.telemetry.transpose import gather
from trainhub_launch.telemetry import BUCKET_S, HOST
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
MAX_POINTS = 500
"""Of each of thousands of GPUs."""
MOST_SLICES = 20_000
"""Of a large fleet one bucket of several stands for what is not folded yet: a thousand nodes have 150,000 of
them."""
APART_S = (10, 20, 30, 60, 120, 300, 600)

Key = tuple[int, str]
_Begun = tuple[int, str, int, bytes]


@dataclass(frozen=True)
class Heat:
    """(node id, GPU's UUID) -> the metric's means on the grid; NaN = not known. A GPU of which nothing is
    known is absent."""

    grid: Grid
    rows: Mapping[Key, Numbers]


def heat(
    nodes: Collection[Node], metric: str, *, start: float, end: float, points: int, now: float | None = None
) -> Heat:
    ids = [node.pk for node in nodes]
    slices = TelemetrySlice.objects.filter(
        usable(SLICE_VERSION), node__in=ids, start__gte=start - BUCKET_S, start__lt=end
    )
    apart_s = _apart(slices.count())
    step = step_for(start, end, points, time.time() if now is None else now)
    # Points that lie closer than the buckets that are read would show gaps where there are none.
    on = grid(start, end, points, max(step, apart_s))
    fresh = {
        (node, subject): chunk
        for node, told in _by_node(slices, apart_s).items()
        for subject, chunk in gather(told, (metric,), ()).items()
    }
    rows = TelemetryChunk.objects.filter(
        node__in=ids, step_s=step, start__gt=on.start - span_s(step), start__lt=on.end
    )
    rows = rows.exclude(subject=HOST)
    keys = dict.fromkeys((*fresh, *rows.order_by().values_list("node", "subject").distinct()))
    place = {key: row for row, key in enumerate(keys)}
    bins = Bins(on, len(place))
    for key, chunk in fresh.items():
        bins.add(chunk, (place[key],))
    for began, chunks in groupby(_chunks(rows.order_by("start"), metric), lambda chunk: chunk[2]):
        bins.add(_side_by_side(began, step, place, metric, chunks), range(len(place)))
    mean = bins.mean
    return Heat(on, {key: mean[row] for key, row in place.items() if bins.weight[row].any()})


def _side_by_side(
    began: int, step: int, place: Mapping[Key, int], metric: str, chunks: Iterable[_Begun]
) -> Chunk:
    """The metric of all subjects over the span of one chunk: a row each, as if subjects were metrics."""
    whole = empty_chunk(began, step, POINTS[step], [subject for _, subject in place])
    for node, subject, start, data in chunks:
        row = place.get((node, subject))
        try:
            if row is not None:
                fill(whole, row, open_chunk(data, start), metric)
        except PackingError as error:
            log.error("What was stored of %r from %s on is not shown: %s", subject, start, error)
    return whole


def _apart(count: int) -> int:
    """Seconds between the buckets that are read, so that they are few enough; each step of chunks is a
    multiple of it, or it of the step."""
    return next((apart_s for apart_s in APART_S if count * BUCKET_S <= MOST_SLICES * apart_s), APART_S[-1])


def _by_node(rows: QuerySet[TelemetrySlice], apart_s: int) -> dict[int, list[tuple[int, bytes]]]:
    if apart_s > BUCKET_S:
        rows = rows.annotate(past=F("start") % apart_s).filter(past=0)
    found: dict[int, list[tuple[int, bytes]]] = {}
    for node, start, data in rows.order_by("start").values_list("node", "start", "data"):
        found.setdefault(node, []).append((start, bytes(data)))
    return found


def _chunks(rows: QuerySet[TelemetryChunk], metric: str) -> Iterable[_Begun]:
    """(node, subject, start, as much of the data as holds the metric)."""
    begun = rows.annotate(head=Substr("data", 1, likely_bytes_needed(metric), output_field=BinaryField()))
    short: list[int] = []
    for pk, node, subject, start, head in begun.values_list(
        "pk", "node", "subject", "start", "head"
    ).iterator(2000):
        data = bytes(head)
        if len(data) < likely_bytes_needed(metric) or bytes_needed(data, metric) <= len(data):
            yield node, subject, start, data
        else:
            short.append(pk)
    for first in range(0, len(short), 500):
        whole = TelemetryChunk.objects.filter(pk__in=short[first : first + 500])
        for node, subject, start, all_of_it in whole.values_list("node", "subject", "start", "data"):
            yield node, subject, start, bytes(all_of_it)
