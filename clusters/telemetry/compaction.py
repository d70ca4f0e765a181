"""Folds slices into chunks, and updates chunks of longer steps from those of the shortest (docs/adr/0007).

A batch of a node's slices is folded in one transaction, which also deletes them, so a crash neither loses nor
duplicates values. Merging a bucket twice changes nothing, and a late bucket is merged into the existing
chunk. Points of longer steps are computed again from the shortest step over whole windows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping

import numpy as np
from django.db import DatabaseError, transaction
from django.db.models import Min, Q

from clusters.models import TelemetryChunk, TelemetrySlice
from clusters.telemetry.chunks import POINTS, Chunk, chunk_bytes, empty_chunk, read_chunk, span_s
from clusters.telemetry.expiry import retention_s
from clusters.telemetry.slice_codec import SLICE_VERSION, PackingError
from clusters.telemetry.transpose import gather
from trainhub_launch.telemetry import BUCKET_S
from workspaces.set_aside import CORRUPT, set_aside, usable

log = logging.getLogger(__name__)
# Age of the oldest slice at which a node is folded. Each fold rewrites the chunk: a longer time writes less,
# a shorter one leaves fewer slices to readers.
FOLD_AFTER_S = 1200
# Spreads the folds of nodes that started at the same moment over this time.
SPREAD_S = 300
# Younger slices are not folded, because `latest` reads them.
MIN_AGE_S = 120
MAX_SLICES = 720
# A tick that has run for longer leaves the remaining nodes to the next one.
TICK_BUDGET_S = 20.0
LONGEST_STEP_S = max(POINTS)

_Key = tuple[str, int, int]
_tick_lock = threading.Lock()


def fold_due_nodes(now: float) -> int:
    """Folds the nodes that are due, the longest waiting first. Returns how many were folded."""
    # A tick that outlasts its interval must not pile up further ones behind it.
    if not _tick_lock.acquire(blocking=False):
        return 0
    try:
        return _fold_due(now, time.monotonic() + TICK_BUDGET_S)
    finally:
        _tick_lock.release()


def fold(node_id: int, now: float) -> int:
    """Folds the slices of the node that are older than MIN_AGE_S. Returns the number of slices."""
    # Older buckets are skipped: the chunks from which the longer steps are computed have expired.
    since, until, folded = int(now) - retention_s()[BUCKET_S], int(now) - MIN_AGE_S, 0
    while batch := _fold_batch(node_id, since, until):
        folded += batch
        if batch < MAX_SLICES:
            break
    return folded


def _fold_due(now: float, until: float) -> int:
    old_slices = TelemetrySlice.objects.filter(
        usable(SLICE_VERSION), start__lt=int(now) - FOLD_AFTER_S
    ).order_by()
    due = (
        old_slices.values("node").annotate(first=Min("start")).order_by("first").values_list("node", "first")
    )
    folded = 0
    for node_id, first in due:
        if time.monotonic() > until:
            break
        # 37 and SPREAD_S have no common divisor, so that nodes with neighbouring ids are folded far apart.
        if first >= now - FOLD_AFTER_S - node_id * 37 % SPREAD_S:
            continue
        try:
            folded += bool(fold(node_id, now))
        except DatabaseError:
            # The other nodes would fail as well.
            raise
        except Exception:
            log.exception("The telemetry of node %s could not be folded; other nodes are folded", node_id)
    return folded


def _fold_batch(node_id: int, since: int, until: int) -> int:
    with transaction.atomic():
        # The row locks serialise two folds of one node: the second finds these slices deleted.
        foldable = TelemetrySlice.objects.select_for_update().filter(
            usable(SLICE_VERSION),
            # Slices that were set aside have waited for a hub that can read them, and count at any age.
            Q(start__gte=since) | Q(set_aside__isnull=False),
            node_id=node_id,
            start__lt=until,
        )
        slices = list(foldable.order_by("start").values_list("pk", "start", "data")[:MAX_SLICES])
        if not slices:
            return 0
        unreadable: dict[int, int] = {}
        news = gather(((start, bytes(data)) for _, start, data in slices), unreadable=unreadable)
        changed, blocked = _merged(node_id, news)
        _store(node_id, changed)
        for (_, step, start), version in blocked.items():
            # Their numbers went into every other chunk; for this one they stay. To merge a bucket twice
            # changes nothing.
            unreadable = {
                at: version for _, at, _ in slices if start <= at < start + span_s(step)
            } | unreadable
        set_aside(TelemetrySlice, {pk: unreadable[start] for pk, start, _ in slices if start in unreadable})
        TelemetrySlice.objects.filter(
            pk__in=[pk for pk, start, _ in slices if start not in unreadable]
        ).delete()
    return len(slices)


def _merged(node_id: int, incoming: Mapping[str, Chunk]) -> tuple[dict[_Key, Chunk], dict[_Key, int]]:
    """Returns all chunks of every step that the incoming values change, and the keys and versions of chunks
    that only a newer hub can change."""
    changed_keys = {
        (subject, BUCKET_S, start) for subject, chunk in incoming.items() for start in _spans(chunk, BUCKET_S)
    }
    longer_keys = {
        (subject, step, start)
        for subject, chunk in incoming.items()
        for step in POINTS
        if step != BUCKET_S
        for start in _spans(chunk, step)
    }
    stored, blocked = _stored_chunks(node_id, changed_keys | longer_keys)
    changed: dict[_Key, Chunk] = {}
    for key in sorted(changed_keys):
        if key in blocked:
            continue  # the longer steps are worked out from this chunk
        subject, _, start = key
        old = stored.get(key) or empty_chunk(start, BUCKET_S, POINTS[BUCKET_S], ())
        changed[key] = shortest = _with_new_points(old, incoming[subject])
        for step in POINTS:
            if step != BUCKET_S:
                longer_key = (subject, step, start // span_s(step) * span_s(step))
                if longer_key in blocked:
                    continue
                previous = (
                    changed.get(longer_key)
                    or stored.get(longer_key)
                    or empty_chunk(longer_key[2], step, POINTS[step], ())
                )
                changed[longer_key] = _refolded(previous, shortest, incoming[subject])
    return changed, blocked


def _spans(chunk: Chunk, step_s: int) -> Iterable[int]:
    """Returns the starts of the stored chunks of that step for which the chunk has values."""
    span = span_s(step_s)
    moments = chunk.start + np.flatnonzero(chunk.count.any(axis=0)) * chunk.step_s
    return [int(start) for start in np.unique(moments // span * span)]


def _stored_chunks(node_id: int, keys: Iterable[_Key]) -> tuple[dict[_Key, Chunk], dict[_Key, int]]:
    """Returns the stored chunks of these keys, and the versions of those in a newer hub's format.

    A chunk of this version that cannot be read is logged and replaced. Keeping it would hide all new values
    of its span, which is up to two days."""
    requested = set(keys)
    subjects, steps, starts = ({key[place] for key in requested} for place in range(3))
    rows = TelemetryChunk.objects.select_for_update().filter(
        node_id=node_id, subject__in=subjects, step_s__in=steps, start__in=starts
    )
    chunks: dict[_Key, Chunk] = {}
    newer: dict[_Key, int] = {}
    for subject, step_s, start, data in rows.order_by("pk").values_list("subject", "step_s", "start", "data"):
        if (subject, step_s, start) in requested:
            try:
                chunks[subject, step_s, start] = read_chunk(bytes(data), start)
            except PackingError as error:
                if error.version != CORRUPT:
                    newer[subject, step_s, start] = error.version
                    continue
                log.error(
                    "The chunk of %r from %s on with a step of %s s cannot be read and is replaced: %s",
                    subject,
                    start,
                    step_s,
                    error,
                )
    return chunks, newer


def _with_new_points(old: Chunk, incoming: Chunk) -> Chunk:
    """Returns the old chunk with the incoming values of its span, and with rows for their new metrics."""
    metrics = tuple(dict.fromkeys((*old.metrics, *incoming.metrics)))
    out = empty_chunk(old.start, old.step_s, old.points, metrics)
    rows = len(old.metrics)
    out.mean[:rows], out.max[:rows], out.count[:rows] = old.mean, old.max, old.count
    first, last = max(old.start, incoming.start), min(old.end, incoming.end)
    target_points = slice((first - old.start) // old.step_s, (last - old.start) // old.step_s)
    source_points = slice((first - incoming.start) // old.step_s, (last - incoming.start) // old.step_s)
    for row, name in enumerate(incoming.metrics):
        has_value = incoming.count[row, source_points] > 0
        target_row = metrics.index(name)
        out.mean[target_row, target_points][has_value] = incoming.mean[row, source_points][has_value]
        out.max[target_row, target_points][has_value] = incoming.max[row, source_points][has_value]
        out.count[target_row, target_points][has_value] = 1
    return out


def _refolded(previous: Chunk, shortest: Chunk, incoming: Chunk) -> Chunk:
    """Returns the chunk of a longer step, with the windows that the incoming values touch computed again from
    `shortest`, which covers these windows entirely."""
    step = previous.step_s
    first = max(shortest.start, incoming.start) // step * step
    last = -(-min(shortest.end, incoming.end) // step) * step
    metrics = tuple(dict.fromkeys((*previous.metrics, *shortest.metrics)))
    out = empty_chunk(previous.start, step, previous.points, metrics)
    rows = len(previous.metrics)
    out.mean[:rows], out.max[:rows], out.count[:rows] = previous.mean, previous.max, previous.count
    target_points = slice((first - previous.start) // step, (last - previous.start) // step)
    source_points = slice((first - shortest.start) // BUCKET_S, (last - shortest.start) // BUCKET_S)
    shape = (len(shortest.metrics), (last - first) // step, step // BUCKET_S)
    mean, maxima, has_value = (
        matrix[:, source_points].reshape(shape)
        for matrix in (shortest.mean, shortest.max, shortest.count > 0)
    )
    count = has_value.sum(axis=2, dtype=np.uint16)
    total = np.where(has_value, mean, 0).sum(axis=2, dtype=np.float64)
    target_rows = [metrics.index(name) for name in shortest.metrics]
    # Where chunks of the shortest step have expired, `shortest` covers less of a window than at the previous
    # computation: the point with more buckets wins.
    better = count >= out.count[target_rows, target_points]
    new_mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    out.mean[target_rows, target_points] = np.where(better, new_mean, out.mean[target_rows, target_points])
    out.max[target_rows, target_points] = np.where(
        better, np.fmax.reduce(maxima, axis=2), out.max[target_rows, target_points]
    )
    out.count[target_rows, target_points] = np.where(better, count, out.count[target_rows, target_points])
    return out


def _store(node_id: int, chunks: Mapping[_Key, Chunk]) -> None:
    rows = [
        TelemetryChunk(node_id=node_id, subject=subject, step_s=step_s, start=start, data=chunk_bytes(chunk))
        for (subject, step_s, start), chunk in chunks.items()
    ]
    TelemetryChunk.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        update_fields=["data"],
        unique_fields=["node", "subject", "step_s", "start"],
    )
