"""Stores and reads the curves of an attempt: the values of its nodes and all their GPUs, stored as long as
the run exists."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import QuerySet

from clusters.models import Node, StoredSeries
from clusters.telemetry import series
from clusters.telemetry.bins import Bins, Grid, grid
from clusters.telemetry.chunks import Chunk, chunk_bytes, empty_chunk, read_chunk
from clusters.telemetry.series import Curves, MetricCurve, NodeSeries
from clusters.telemetry.slice_codec import PackingError
from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import HOST
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)
MAX_POINTS = 1500


@dataclass(frozen=True)
class StoredCurves:
    """The stored curves of one node by subject. All subjects of an attempt are on the same grid."""

    step_s: int
    subjects: Mapping[str, Chunk]


def store_curves(
    holder: str, attempt: int, node: Node, *, start: float, end: float, now: float | None = None
) -> None:
    """Stores the curves of the node over the span, replacing those stored before."""
    series_read = series.read_node(
        node,
        None,
        gpu_metrics=tuple(GPU_KEYS),
        host_metrics=tuple(HOST_KEYS),
        start=start,
        end=end,
        points=MAX_POINTS,
        now=now,
    )
    # The host's row is stored even without values: it marks the attempt as processed.
    rows = [
        _row(series_read.grid, HOST, series_read.host),
        *(_row(series_read.grid, uuid, curves) for uuid, curves in series_read.gpus.items()),
    ]
    for row in rows:
        row.holder, row.attempt, row.node_name = holder, attempt, node.name
    StoredSeries.objects.bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["step_s", "start", "data"],
        unique_fields=["holder", "attempt", "node_name", "subject"],
    )


def load_curves(holder: str, attempt: int) -> dict[str, StoredCurves]:
    """Returns the stored curves by node name; nodes without stored curves are absent."""
    curves: dict[str, StoredCurves] = {}
    for row in _stored(holder, attempt):
        try:
            chunk = read_chunk(bytes(row.data), row.start)
        except PackingError as error:
            # One unreadable row must not hide the curves of all other devices.
            log.error("The stored curves of run %s for %r cannot be read: %s", holder, row.subject, error)
            continue
        subjects = (
            {**curves[row.node_name].subjects, row.subject: chunk}
            if row.node_name in curves
            else {row.subject: chunk}
        )
        curves[row.node_name] = StoredCurves(row.step_s, subjects)
    return curves


@compiled
def _stored(holder: str, attempt: int) -> QuerySet[StoredSeries]:
    return StoredSeries.objects.filter(holder=holder, attempt=attempt).order_by("node_name", "subject")


def read_stored(
    stored: StoredCurves,
    gpus: Collection[str] | None,
    *,
    gpu_metrics: Sequence[str],
    host_metrics: Sequence[str],
    start: float,
    end: float,
    points: int,
) -> NodeSeries:
    """Returns the curves of a node and of these GPUs (None: all) from the stored curves, on a grid of at most
    `points` points. `start` and `end`: Unix seconds."""
    points_grid = grid(start, end, points, stored.step_s)
    curves = {
        subject: _curves(chunk, points_grid, host_metrics if subject == HOST else gpu_metrics)
        for subject, chunk in stored.subjects.items()
        if subject == HOST or gpus is None or subject in gpus
    }
    return NodeSeries(points_grid, curves.pop(HOST, {}), curves)


def delete_curves(holder: str) -> None:
    """Deletes the curves of a deleted run."""
    StoredSeries.objects.filter(holder=holder).delete()


def _row(row_grid: Grid, subject: str, curves: Curves) -> StoredSeries:
    chunk = empty_chunk(row_grid.start, row_grid.step_s, row_grid.points, tuple(curves))
    for row, curve in enumerate(curves.values()):
        chunk.mean[row], chunk.max[row], chunk.count[row] = curve.mean, curve.max, ~np.isnan(curve.mean)
    return StoredSeries(
        subject=subject, step_s=row_grid.step_s, start=row_grid.start, data=chunk_bytes(chunk)
    )


def _curves(chunk: Chunk, curve_grid: Grid, metrics: Sequence[str]) -> dict[str, MetricCurve]:
    bins = Bins(curve_grid, len(chunk.metrics))
    bins.add(chunk, range(len(chunk.metrics)))
    mean = bins.mean
    rows = [(chunk.metrics.index(name), name) for name in metrics if name in chunk.metrics]
    return {name: MetricCurve(mean[row], bins.peak[row]) for row, name in rows if bins.weight[row].any()}
