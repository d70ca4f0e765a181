"""Reads one metric of every GPU of many nodes for a heat map."""

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
from clusters.telemetry.chunks import (
    POINTS,
    Chunk,
    bytes_needed,
    empty_chunk,
    fill_row,
    likely_bytes_needed,
    open_chunk,
    span_s,
)
from clusters.telemetry.series import step_for
from clusters.telemetry.slice_codec import SLICE_VERSION, Numbers, PackingError
from clusters.telemetry.transpose import gather
from trainhub_launch.telemetry import BUCKET_S, HOST
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
# Per GPU; there may be thousands of GPUs.
MAX_POINTS = 500
# Above this number only a sample of the slices is read: a thousand nodes have 150,000 that are not folded
# yet.
MAX_SLICES = 20_000
SAMPLING_STEPS_S = (10, 20, 30, 60, 120, 300, 600)

Key = tuple[int, str]
_ChunkHead = tuple[int, str, int, bytes]


@dataclass(frozen=True)
class Heat:
    """`rows`: (node id, GPU UUID) -> means of the metric on the grid, NaN = unknown. GPUs without values are
    absent."""

    grid: Grid
    rows: Mapping[Key, Numbers]


def read_heat(
    nodes: Collection[Node], metric: str, *, start: float, end: float, points: int, now: float | None = None
) -> Heat:
    ids = [node.pk for node in nodes]
    slices = TelemetrySlice.objects.filter(
        usable(SLICE_VERSION), node__in=ids, start__gte=start - BUCKET_S, start__lt=end
    )
    sampling_s = _sampling_step_s(slices.count())
    step = step_for(start, end, points, time.time() if now is None else now)
    # Points closer together than the sampled buckets would show gaps that do not exist.
    heat_grid = grid(start, end, points, max(step, sampling_s))
    recent = {
        (node, subject): chunk
        for node, slices_of_node in _by_node(slices, sampling_s).items()
        for subject, chunk in gather(slices_of_node, (metric,), ()).items()
    }
    rows = TelemetryChunk.objects.filter(
        node__in=ids, step_s=step, start__gt=heat_grid.start - span_s(step), start__lt=heat_grid.end
    )
    rows = rows.exclude(subject=HOST)
    keys = dict.fromkeys((*recent, *rows.order_by().values_list("node", "subject").distinct()))
    row_of_key = {key: row for row, key in enumerate(keys)}
    bins = Bins(heat_grid, len(row_of_key))
    for key, chunk in recent.items():
        bins.add(chunk, (row_of_key[key],))
    for start_of_chunks, chunks in groupby(_chunks(rows.order_by("start"), metric), lambda chunk: chunk[2]):
        bins.add(_merged_rows(start_of_chunks, step, row_of_key, metric, chunks), range(len(row_of_key)))
    mean = bins.mean
    return Heat(heat_grid, {key: mean[row] for key, row in row_of_key.items() if bins.weight[row].any()})


def _merged_rows(
    start_of_chunks: int, step: int, row_of_key: Mapping[Key, int], metric: str, chunks: Iterable[_ChunkHead]
) -> Chunk:
    """Returns one chunk with a row for each subject instead of each metric, over the span of the chunks."""
    whole = empty_chunk(start_of_chunks, step, POINTS[step], [subject for _, subject in row_of_key])
    for node, subject, start, data in chunks:
        row = row_of_key.get((node, subject))
        try:
            if row is not None:
                fill_row(whole, row, open_chunk(data, start), metric)
        except PackingError as error:
            log.error("The chunk of %r from %s on cannot be read: %s", subject, start, error)
    return whole


def _sampling_step_s(count: int) -> int:
    """Returns the seconds between sampled buckets that keep their number below MAX_SLICES. Each chunk step is
    a multiple or a divisor of it."""
    return next(
        (apart_s for apart_s in SAMPLING_STEPS_S if count * BUCKET_S <= MAX_SLICES * apart_s),
        SAMPLING_STEPS_S[-1],
    )


def _by_node(rows: QuerySet[TelemetrySlice], sampling_s: int) -> dict[int, list[tuple[int, bytes]]]:
    if sampling_s > BUCKET_S:
        rows = rows.annotate(past=F("start") % sampling_s).filter(past=0)
    by_node: dict[int, list[tuple[int, bytes]]] = {}
    for node, start, data in rows.order_by("start").values_list("node", "start", "data"):
        by_node.setdefault(node, []).append((start, bytes(data)))
    return by_node


def _chunks(rows: QuerySet[TelemetryChunk], metric: str) -> Iterable[_ChunkHead]:
    """Yields (node id, subject, start, the prefix of the data that holds the metric)."""
    heads = rows.annotate(head=Substr("data", 1, likely_bytes_needed(metric), output_field=BinaryField()))
    incomplete: list[int] = []
    for pk, node, subject, start, head in heads.values_list(
        "pk", "node", "subject", "start", "head"
    ).iterator(2000):
        data = bytes(head)
        # A value shorter than the requested prefix is the whole chunk.
        if len(data) < likely_bytes_needed(metric) or bytes_needed(data, metric) <= len(data):
            yield node, subject, start, data
        else:
            incomplete.append(pk)
    for first in range(0, len(incomplete), 500):
        whole = TelemetryChunk.objects.filter(pk__in=incomplete[first : first + 500])
        for node, subject, start, stored in whole.values_list("node", "subject", "start", "data"):
            yield node, subject, start, bytes(stored)
