"""One metric of every GPU of many nodes, as a heat map shows it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import BinaryField, F, QuerySet
from django.db.models.functions import Substr

from clusters.models import Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry.bins import Bins, Grid
from clusters.telemetry.chunks import POINTS, Chunk, empty, fill, likely_needed, needed, opened, span_s
from clusters.telemetry.gathering import gather
from clusters.telemetry.packing import Numbers, PackingError
from clusters.telemetry.series import grid_and_step
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
MOST_POINTS = 500
"""Of each of thousands of GPUs."""
MOST_SLICES = 20_000
"""Of a large fleet one bucket of several stands for what is not folded yet: its newest half hour is half a million."""

Key = tuple[int, str]
_Begun = tuple[int, str, int, bytes]


@dataclass(frozen=True)
class Heat:
    """(node id, GPU's UUID) -> the metric's means on the grid; NaN = not known. A GPU of which nothing is known is absent."""

    grid: Grid
    rows: Mapping[Key, Numbers]


def heat(
    nodes: Collection[Node], metric: str, *, start: float, end: float, points: int, now: float | None = None
) -> Heat:
    on, step = grid_and_step(start, end, points, now)
    ids = [node.pk for node in nodes]
    fresh = {
        (node, subject): chunk for node, slices in _slices(ids, on).items()
        for subject, chunk in gather(slices, (metric,), ()).items()
    }
    rows = TelemetryChunk.objects.filter(node__in=ids, step_s=step, start__gt=on.start - span_s(step), start__lt=on.end)
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


def _side_by_side(began: int, step: int, place: Mapping[Key, int], metric: str, chunks: Iterable[_Begun]) -> Chunk:
    """The metric of all subjects over the span of one chunk: a row each, as if subjects were metrics."""
    whole = empty(began, step, POINTS[step], [subject for _, subject in place])
    for node, subject, start, data in chunks:
        row = place.get((node, subject))
        try:
            if row is not None:
                fill(whole, row, opened(data, start), metric)
        except PackingError as error:
            log.error("What was stored of %r from %s on is not shown: %s", subject, start, error)
    return whole


def _slices(nodes: Sequence[int], on: Grid) -> dict[int, list[tuple[int, bytes]]]:
    rows = TelemetrySlice.objects.filter(node__in=nodes, start__gte=on.start, start__lt=on.end)
    apart_s = BUCKET_S * -(-rows.count() // MOST_SLICES)
    if apart_s > BUCKET_S:
        rows = rows.annotate(past=F("start") % apart_s).filter(past=0)
    found: dict[int, list[tuple[int, bytes]]] = {}
    for node, start, data in rows.order_by("start").values_list("node", "start", "data"):
        found.setdefault(node, []).append((start, bytes(data)))
    return found


def _chunks(rows: QuerySet[TelemetryChunk], metric: str) -> Iterable[_Begun]:
    """(node, subject, start, as much of the data as holds the metric)."""
    begun = rows.annotate(head=Substr("data", 1, likely_needed(metric), output_field=BinaryField()))
    short: list[int] = []
    for pk, node, subject, start, head in begun.values_list("pk", "node", "subject", "start", "head").iterator(2000):
        data = bytes(head)
        if len(data) < likely_needed(metric) or needed(data, metric) <= len(data):
            yield node, subject, start, data
        else:
            short.append(pk)
    for first in range(0, len(short), 500):
        whole = TelemetryChunk.objects.filter(pk__in=short[first : first + 500])
        for node, subject, start, all_of_it in whole.values_list("node", "subject", "start", "data"):
            yield node, subject, start, bytes(all_of_it)
