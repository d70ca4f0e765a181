"""Transposes the slices of one node: from all subjects at one moment to one subject over time."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

import numpy as np

from clusters.telemetry.chunks import Chunk, empty_chunk
from clusters.telemetry.slice_codec import Numbers, PackingError, slice_parts
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
PartShape = tuple[tuple[str, ...], tuple[str, ...]]


def gather(
    slices: Iterable[tuple[int, bytes]],
    gpu_metrics: Collection[str] | None = None,
    host_metrics: Collection[str] | None = None,
    unreadable: dict[int, int] | None = None,
) -> dict[str, Chunk]:
    """Returns subject -> chunk with all its buckets, NaN for missing values, from (start, bytes) pairs of one
    node.

    `gpu_metrics` and `host_metrics` limit the metrics; None means all.

    A slice that cannot be read is logged and left out. Its start and version (see workspaces.set_aside) are
    added to `unreadable`."""
    by_shape: dict[PartShape, list[tuple[int, Numbers, Numbers]]] = {}
    for start, data in slices:
        try:
            for part in slice_parts(data):
                by_shape.setdefault((part.subjects, part.metrics), []).append((start, part.mean, part.max))
        except PackingError as error:
            log.warning("The slice at %s cannot be read and is left out: %s", start, error)
            if unreadable is not None:
                unreadable[start] = error.version
    starts = [start for rows in by_shape.values() for start, _, _ in rows]
    if not starts:
        return {}
    first, points = min(starts), (max(starts) - min(starts)) // BUCKET_S + 1
    chunks = {
        subject: empty_chunk(first, BUCKET_S, points, metrics)
        for subject, metrics in _columns(by_shape, gpu_metrics, host_metrics).items()
    }
    for shape, rows in by_shape.items():
        _place(chunks, shape, rows, first)
    return {subject: _counted(chunk) for subject, chunk in chunks.items()}


def _columns(
    shapes: Iterable[PartShape], gpu_metrics: Collection[str] | None, host_metrics: Collection[str] | None
) -> dict[str, list[str]]:
    columns: dict[str, dict[str, None]] = {}
    for subjects, metrics in shapes:
        for subject in subjects:
            requested = host_metrics if subject == HOST else gpu_metrics
            columns.setdefault(subject, {}).update(
                (name, None) for name in metrics if requested is None or name in requested
            )
    return {subject: list(names) for subject, names in columns.items() if names}


def _place(
    chunks: dict[str, Chunk], shape: PartShape, rows: list[tuple[int, Numbers, Numbers]], first: int
) -> None:
    subjects, metrics = shape
    moments = np.array([(start - first) // BUCKET_S for start, _, _ in rows])
    means, peaks = (np.stack([row[which] for row in rows]) for which in (1, 2))
    for subject_row, subject in enumerate(subjects):
        chunk = chunks.get(subject)
        if chunk is None:
            continue
        for column, name in enumerate(metrics):
            if name in chunk.metrics:
                # A bucket may have two parts if the agent was restarted within it; they complete each other.
                has_value = ~np.isnan(means[:, subject_row, column])
                row = chunk.metrics.index(name)
                chunk.mean[row, moments[has_value]] = means[has_value, subject_row, column]
                chunk.max[row, moments[has_value]] = peaks[has_value, subject_row, column]


def _counted(chunk: Chunk) -> Chunk:
    chunk.count[:] = ~np.isnan(chunk.mean)
    return chunk
