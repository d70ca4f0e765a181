"""The curves of an attempt, kept for as long as its run is: what its nodes and all their GPUs measured
meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from clusters.models import KeptSeries, Node
from clusters.telemetry import series
from clusters.telemetry.bins import Bins, Grid, grid
from clusters.telemetry.chunks import Chunk, chunk_bytes, empty_chunk, read_chunk
from clusters.telemetry.series import MetricCurve, Curves, NodeSeries
from clusters.telemetry.slice_codec import PackingError
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import HOST

log = logging.getLogger(__name__)
MOST_POINTS = 1500


@dataclass(frozen=True)
class StoredCurves:
    """What was kept of one node, by subject; all of an attempt's on the same grid."""

    step_s: int
    subjects: Mapping[str, Chunk]


def store(
    holder: str, attempt: int, node: Node, *, start: float, end: float, now: float | None = None
) -> None:
    """Keep what is known of the node over the span. Kept again, it replaces what was kept."""
    found = series.read(
        node,
        None,
        gpu_metrics=tuple(GPU_KEYS),
        host_metrics=tuple(HOST_KEYS),
        start=start,
        end=end,
        points=MOST_POINTS,
        now=now,
    )
    # The host's row is there even where nothing is known: it says that the attempt was looked at.
    rows = [
        _row(found.grid, HOST, found.host),
        *(_row(found.grid, uuid, curves) for uuid, curves in found.gpus.items()),
    ]
    for row in rows:
        row.holder, row.attempt, row.node_name = holder, attempt, node.name
    KeptSeries.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["step_s", "start", "data"],
        unique_fields=["holder", "attempt", "node_name", "subject"],
    )


def load(holder: str, attempt: int) -> dict[str, StoredCurves]:
    """Node's name -> what was kept; nodes of which nothing was (yet) are absent."""
    found: dict[str, StoredCurves] = {}
    for row in KeptSeries.objects.filter(holder=holder, attempt=attempt).order_by("node_name", "subject"):
        try:
            chunk = read_chunk(bytes(row.data), row.start)
        except PackingError as error:
            log.error("A curve of run %s, kept of %r, is not shown: %s", holder, row.subject, error)
            continue
        subjects = (
            {**found[row.node_name].subjects, row.subject: chunk}
            if row.node_name in found
            else {row.subject: chunk}
        )
        found[row.node_name] = StoredCurves(row.step_s, subjects)
    return found


def read(
    held: StoredCurves,
    gpus: Collection[str] | None,
    *,
    gpu_metrics: Sequence[str],
    host_metrics: Sequence[str],
    start: float,
    end: float,
    points: int,
) -> NodeSeries:
    """As `series.read`, from what was kept."""
    on = grid(start, end, points, held.step_s)
    curves = {
        subject: _curves(chunk, on, host_metrics if subject == HOST else gpu_metrics)
        for subject, chunk in held.subjects.items()
        if subject == HOST or gpus is None or subject in gpus
    }
    return NodeSeries(on, curves.pop(HOST, {}), curves)


def delete(holder: str) -> None:
    """The run is deleted."""
    KeptSeries.objects.filter(holder=holder).delete()


def _row(on: Grid, subject: str, curves: Curves) -> KeptSeries:
    chunk = empty_chunk(on.start, on.step_s, on.points, tuple(curves))
    for row, curve in enumerate(curves.values()):
        chunk.mean[row], chunk.max[row], chunk.count[row] = curve.mean, curve.max, ~np.isnan(curve.mean)
    return KeptSeries(subject=subject, step_s=on.step_s, start=on.start, data=chunk_bytes(chunk))


def _curves(chunk: Chunk, on: Grid, metrics: Sequence[str]) -> dict[str, MetricCurve]:
    bins = Bins(on, len(chunk.metrics))
    bins.add(chunk, range(len(chunk.metrics)))
    mean = bins.mean
    rows = [(chunk.metrics.index(name), name) for name in metrics if name in chunk.metrics]
    return {name: MetricCurve(mean[row], bins.peak[row]) for row, name in rows if bins.weight[row].any()}
