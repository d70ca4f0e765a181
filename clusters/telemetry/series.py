"""Reading numbers over time: the curves of a node, of a GPU wherever it was, and one metric of a fleet.

The step is the longest stored one that still gives the points that are asked for, or the shortest that is
kept for so long. What is not folded yet is read from slices, first: what moves meanwhile is then seen twice,
which no mean minds, and never not at all."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import QuerySet

from clusters.models import Gpu, Node, TelemetryChunk, TelemetrySlice
from clusters.telemetry.bins import Bins, Grid, grid
from clusters.telemetry.chunks import POINTS, Chunk, empty_chunk, fill, open_chunk, span_s
from clusters.telemetry.expiry import retention_s
from clusters.telemetry.slice_codec import SLICE_VERSION, Numbers, PackingError
from clusters.telemetry.transpose import gather
from trainhub_launch.telemetry import BUCKET_S, HOST
from workspaces.set_aside import usable

log = logging.getLogger(__name__)
MAX_POINTS = 2000


@dataclass(frozen=True)
class MetricCurve:
    """A metric on a grid; NaN = not known."""

    mean: Numbers
    max: Numbers


Curves = Mapping[str, MetricCurve]


@dataclass(frozen=True)
class NodeSeries:
    """`gpus`: UUID -> metric -> curve. A metric of which nothing is known in the span is absent."""

    grid: Grid
    host: Curves
    gpus: Mapping[str, Curves]


def read(
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
    """What a node measured, of these GPUs or (None) of all that it had in the span."""
    on, step = _grid_and_step(start, end, points, now)
    subjects = None if gpus is None else [*gpus, HOST]
    found = _Reading(on, gpu_metrics, host_metrics)
    found.take_slices([node.pk], subjects)
    chunks = TelemetryChunk.objects.filter(node=node)
    found.take_chunks(
        chunks,
        step,
        list(chunks.values_list("subject", flat=True).distinct()) if subjects is None else subjects,
    )
    return found.series()


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
    """A GPU's curves, on whichever of these nodes it was: a device keeps its history where it is moved to."""
    on, step = _grid_and_step(start, end, points, now)
    found = _Reading(on, gpu_metrics, ())
    chunks = TelemetryChunk.objects.filter(subject=gpu.uuid, node__in=nodes.values("pk"))
    former = chunks.filter(step_s=max(POINTS), start__gt=on.start - span_s(max(POINTS))).values_list(
        "node", flat=True
    )
    found.take_slices({gpu.node_id, *former}, [gpu.uuid])
    found.take_chunks(chunks, step, [gpu.uuid])
    return found.series()


def step_for(start: float, end: float, points: int, now: float) -> int:
    """Which stored step to read: the longest that gives so many points, of those that reach back so far."""
    kept = retention_s()
    reaching = [step for step in sorted(POINTS) if start >= now - kept[step]] or [max(POINTS)]
    fitting = [step for step in reaching if step * points <= end - start]
    return max(fitting, default=reaching[0])


def _grid_and_step(start: float, end: float, points: int, now: float | None) -> tuple[Grid, int]:
    """Where the points of an answer lie, and the stored step that they are merged from."""
    step = step_for(start, end, points, time.time() if now is None else now)
    return grid(start, end, points, step), step


class _Reading:
    """Curves that come together from rows of several kinds."""

    def __init__(self, on: Grid, gpu_metrics: Sequence[str], host_metrics: Sequence[str]) -> None:
        self._on = on
        self._metrics = {False: tuple(gpu_metrics), True: tuple(host_metrics)}
        self._bins: dict[str, Bins] = {}

    def take_slices(self, nodes: Collection[int], subjects: Sequence[str] | None) -> None:
        rows = TelemetrySlice.objects.filter(
            usable(SLICE_VERSION),
            node__in=nodes,
            start__gte=self._on.start - BUCKET_S,
            start__lt=self._on.end,
        )
        by_node: dict[int, list[tuple[int, bytes]]] = {}
        for node, start, data in rows.order_by("node", "start").values_list("node", "start", "data"):
            by_node.setdefault(node, []).append((start, bytes(data)))
        for slices in by_node.values():
            for subject, chunk in gather(slices, self._metrics[False], self._metrics[True]).items():
                if subjects is None or subject in subjects:
                    self._bins_of(subject).add(chunk, self._rows(subject, chunk.metrics))

    def take_chunks(self, chunks: QuerySet[TelemetryChunk], step: int, subjects: Sequence[str]) -> None:
        # With all subjects named, both databases go by the index of nodes and subjects; else SQLite goes
        # through all nodes.
        wanted = [subject for subject in subjects if self._metrics[subject == HOST]]
        rows = chunks.filter(
            subject__in=wanted, step_s=step, start__gt=self._on.start - span_s(step), start__lt=self._on.end
        )
        told = rows.order_by("subject", "start").values_list("subject", "start", "data")
        for subject, found in groupby(told, lambda row: row[0]):
            whole = _end_to_end(
                [(start, bytes(data)) for _, start, data in found], step, self._metrics[subject == HOST]
            )
            self._bins_of(subject).add(whole, range(len(whole.metrics)))

    def series(self) -> NodeSeries:
        curves = {subject: dict(self._curves(subject, bins)) for subject, bins in self._bins.items()}
        return NodeSeries(self._on, curves.pop(HOST, {}), curves)

    def _bins_of(self, subject: str) -> Bins:
        found = self._bins.get(subject)
        if found is None:
            found = self._bins[subject] = Bins(self._on, len(self._metrics[subject == HOST]))
        return found

    def _rows(self, subject: str, metrics: Sequence[str]) -> list[int]:
        order = self._metrics[subject == HOST]
        return [order.index(name) for name in metrics]

    def _curves(self, subject: str, bins: Bins) -> Iterable[tuple[str, MetricCurve]]:
        mean = bins.mean
        for row, name in enumerate(self._metrics[subject == HOST]):
            if bins.weight[row].any():
                yield name, MetricCurve(mean[row], bins.peak[row])


def _end_to_end(chunks: Sequence[tuple[int, bytes]], step: int, metrics: Sequence[str]) -> Chunk:
    """Stored chunks of one subject, in their order, as a long one."""
    first, last = chunks[0][0], chunks[-1][0] + span_s(step)
    whole = empty_chunk(first, step, (last - first) // step, metrics)
    for start, data in chunks:
        try:
            packed = open_chunk(data, start)
            for row, metric in enumerate(metrics):
                fill(whole, row, packed, metric)
        except PackingError as error:
            log.error("What was stored from %s on in steps of %s s is not shown: %s", start, step, error)
    return whole
