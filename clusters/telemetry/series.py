"""Reads curves: those of a node, and those of a GPU on all nodes where it was.

The step is the longest stored one that gives the requested number of points, or the shortest one whose
retention covers the span. Slices that are not folded yet are read before chunks: values that are folded in
between are then read twice, which does not change a mean, and are never missed."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import QuerySet

from clusters.models import Gpu, Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry.bins import Bins, Grid, grid
from clusters.telemetry.chunks import POINTS, Chunk, empty_chunk, fill_row, open_chunk, span_s
from clusters.telemetry.expiry import retention_s
from clusters.telemetry.slice_codec import SLICE_VERSION, Numbers, PackingError
from clusters.telemetry.transpose import gather
from trainhub_launch.telemetry import BUCKET_S, HOST
from workspaces.database.compiled_queries import compiled
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
MAX_POINTS = 2000


@dataclass(frozen=True)
class MetricCurve:
    """The means and maxima of one metric at the points of a grid; NaN = unknown."""

    mean: Numbers
    max: Numbers


Curves = Mapping[str, MetricCurve]
SliceRow = tuple[int, "bytes | memoryview[int]"]


@dataclass(frozen=True)
class NodeSeries:
    """The curves of one node on a common grid. `gpus`: UUID -> metric -> curve. Metrics without values in the
    span are absent."""

    grid: Grid
    host: Curves
    gpus: Mapping[str, Curves]


def read_node(
    node: Node,
    gpus: Sequence[str] | None,
    *,
    gpu_metrics: Sequence[str],
    host_metrics: Sequence[str],
    start: float,
    end: float,
    points: int,
    now: float | None = None,
) -> NodeSeries:
    """Returns the curves of a node and of these GPUs, or with None of all GPUs that it had in the span."""
    series_grid, step = _grid_and_step(start, end, points, now)
    subjects = None if gpus is None else [*gpus, HOST]
    builder = _SeriesBuilder(series_grid, gpu_metrics, host_metrics)
    builder.take_slices([node.pk], subjects)
    chunks = TelemetryChunk.objects.filter(node=node)
    builder.take_chunks(
        chunks,
        step,
        list(chunks.values_list("subject", flat=True).distinct()) if subjects is None else subjects,
    )
    return builder.series()


def read_gpu(
    gpu: Gpu,
    nodes: QuerySet[Node],
    *,
    gpu_metrics: Sequence[str],
    start: float,
    end: float,
    points: int,
    now: float | None = None,
) -> NodeSeries:
    """Returns the curves of a GPU on all of these nodes: a device keeps its history when it is moved."""
    series_grid, step = _grid_and_step(start, end, points, now)
    builder = _SeriesBuilder(series_grid, gpu_metrics, ())
    chunks = TelemetryChunk.objects.filter(subject=gpu.uuid, node__in=nodes.values("pk"))
    # Chunks of the longest step are stored longest, so they name every node where the GPU has values.
    former = chunks.filter(step_s=max(POINTS), start__gt=series_grid.start - span_s(max(POINTS))).values_list(
        "node", flat=True
    )
    builder.take_slices({gpu.node_id, *former}, [gpu.uuid])
    builder.take_chunks(chunks, step, [gpu.uuid])
    return builder.series()


def step_for(start: float, end: float, points: int, now: float) -> int:
    """Returns the stored step to read: the longest one that gives `points` points and covers the span."""
    retention = retention_s()
    far_enough = [step for step in sorted(POINTS) if start >= now - retention[step]] or [max(POINTS)]
    fine_enough = [step for step in far_enough if step * points <= end - start]
    return max(fine_enough, default=far_enough[0])


def _grid_and_step(start: float, end: float, points: int, now: float | None) -> tuple[Grid, int]:
    """Returns the grid of the answer, and the stored step that its points are merged from."""
    step = step_for(start, end, points, time.time() if now is None else now)
    return grid(start, end, points, step), step


class _SeriesBuilder:
    """Builds curves from slices and chunks."""

    def __init__(self, on: Grid, gpu_metrics: Sequence[str], host_metrics: Sequence[str]) -> None:
        self._on = on
        self._metrics = {False: tuple(gpu_metrics), True: tuple(host_metrics)}
        self._bins: dict[str, Bins] = {}

    def take_slices(self, nodes: Collection[int], subjects: Sequence[str] | None) -> None:
        for node in sorted(nodes):
            rows = _slices(node, self._on.start - BUCKET_S, self._on.end)
            slices = [(start, bytes(data)) for start, data in rows]
            if not slices:
                continue
            for subject, chunk in gather(slices, self._metrics[False], self._metrics[True]).items():
                if subjects is None or subject in subjects:
                    self._bins_of(subject).add(chunk, self._rows(subject, chunk.metrics))

    def take_chunks(self, chunks: QuerySet[TelemetryChunk], step: int, subjects: Sequence[str]) -> None:
        # With all subjects named both databases use the index of nodes and subjects; otherwise SQLite scans
        # all nodes.
        requested = [subject for subject in subjects if self._metrics[subject == HOST]]
        rows = chunks.filter(
            subject__in=requested,
            step_s=step,
            start__gt=self._on.start - span_s(step),
            start__lt=self._on.end,
        )
        ordered = rows.order_by("subject", "start").values_list("subject", "start", "data")
        for subject, subject_rows in groupby(ordered, lambda row: row[0]):
            whole = _end_to_end(
                [(start, bytes(data)) for _, start, data in subject_rows],
                step,
                self._metrics[subject == HOST],
            )
            self._bins_of(subject).add(whole, range(len(whole.metrics)))

    def series(self) -> NodeSeries:
        curves = {subject: dict(self._curves(subject, bins)) for subject, bins in self._bins.items()}
        return NodeSeries(self._on, curves.pop(HOST, {}), curves)

    def _bins_of(self, subject: str) -> Bins:
        bins = self._bins.get(subject)
        if bins is None:
            bins = self._bins[subject] = Bins(self._on, len(self._metrics[subject == HOST]))
        return bins

    def _rows(self, subject: str, metrics: Sequence[str]) -> list[int]:
        order = self._metrics[subject == HOST]
        return [order.index(name) for name in metrics]

    def _curves(self, subject: str, bins: Bins) -> Iterable[tuple[str, MetricCurve]]:
        mean = bins.mean
        for row, name in enumerate(self._metrics[subject == HOST]):
            if bins.weight[row].any():
                yield name, MetricCurve(mean[row], bins.peak[row])


@compiled
def _slices(node_id: int, start: int, end: int) -> QuerySet[TelemetrySlice, SliceRow]:
    rows = TelemetrySlice.objects.filter(
        usable(SLICE_VERSION), node_id=node_id, start__gte=start, start__lt=end
    )
    return rows.order_by("start").values_list("start", "data")


def _end_to_end(chunks: Sequence[tuple[int, bytes]], step: int, metrics: Sequence[str]) -> Chunk:
    """Returns the stored chunks of one subject, in order of their start, as one long chunk."""
    first, last = chunks[0][0], chunks[-1][0] + span_s(step)
    whole = empty_chunk(first, step, (last - first) // step, metrics)
    for start, data in chunks:
        try:
            packed = open_chunk(data, start)
            for row, metric in enumerate(metrics):
                fill_row(whole, row, packed, metric)
        except PackingError as error:
            log.error("The chunk from %s on with a step of %s s cannot be read: %s", start, step, error)
    return whole
