"""Slices of one node, turned around: from all subjects at one moment to one subject over time."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

import numpy as np

from clusters.telemetry.chunks import Chunk, empty_chunk
from clusters.telemetry.slice_codec import Numbers, PackingError, slice_parts
from trainhub_launch.telemetry import BUCKET_S, HOST

log = logging.getLogger(__name__)
Kind = tuple[tuple[str, ...], tuple[str, ...]]


def gather(
    slices: Iterable[tuple[int, bytes]],
    gpu_metrics: Collection[str] | None = None,
    host_metrics: Collection[str] | None = None,
    unreadable: dict[int, int] | None = None,
) -> dict[str, Chunk]:
    """(start, bytes) -> subject -> its buckets from the first to the last, with NaN between. With metrics,
    those alone.

    A slice that cannot be read is logged, left out, and named in `unreadable`: its start and version
    (workspaces.set_aside)."""
    found: dict[Kind, list[tuple[int, Numbers, Numbers]]] = {}
    for start, data in slices:
        try:
            for part in slice_parts(data):
                found.setdefault((part.subjects, part.metrics), []).append((start, part.mean, part.max))
        except PackingError as error:
            log.warning("What was measured at %s is left out: %s", start, error)
            if unreadable is not None:
                unreadable[start] = error.version
    starts = [start for rows in found.values() for start, _, _ in rows]
    if not starts:
        return {}
    first, points = min(starts), (max(starts) - min(starts)) // BUCKET_S + 1
    chunks = {
        subject: empty_chunk(first, BUCKET_S, points, metrics)
        for subject, metrics in _columns(found, gpu_metrics, host_metrics).items()
    }
    for kind, rows in found.items():
        _place(chunks, kind, rows, first)
    return {subject: _counted(chunk) for subject, chunk in chunks.items()}


def _columns(
    kinds: Iterable[Kind], gpu_metrics: Collection[str] | None, host_metrics: Collection[str] | None
) -> dict[str, list[str]]:
    columns: dict[str, dict[str, None]] = {}
    for subjects, metrics in kinds:
        for subject in subjects:
            wanted = host_metrics if subject == HOST else gpu_metrics
            columns.setdefault(subject, {}).update(
                (name, None) for name in metrics if wanted is None or name in wanted
            )
    return {subject: list(names) for subject, names in columns.items() if names}


def _place(
    chunks: dict[str, Chunk], kind: Kind, rows: list[tuple[int, Numbers, Numbers]], first: int
) -> None:
    subjects, metrics = kind
    moments = np.array([(start - first) // BUCKET_S for start, _, _ in rows])
    means, peaks = (np.stack([row[which] for row in rows]) for which in (1, 2))
    for place, subject in enumerate(subjects):
        chunk = chunks.get(subject)
        if chunk is None:
            continue
        for column, name in enumerate(metrics):
            if name in chunk.metrics:
                # What is told twice of a bucket, by two agents of which one began in its midst, completes one
                # another.
                known = ~np.isnan(means[:, place, column])
                row = chunk.metrics.index(name)
                chunk.mean[row, moments[known]] = means[known, place, column]
                chunk.max[row, moments[known]] = peaks[known, place, column]


def _counted(chunk: Chunk) -> Chunk:
    chunk.count[:] = ~np.isnan(chunk.mean)
    return chunk
