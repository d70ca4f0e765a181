"""Slices become chunks, and chunks of long steps follow those of short ones (docs/adr/0007).

A node is folded in one transaction: its slices go as their numbers come into chunks, so a crash loses and
doubles nothing. Merging the same bucket twice changes nothing, and a late one finds its place in a chunk that
is there already. Points of the longer steps are worked out anew from the shortest, over whole windows, and
replace what stood there."""

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
FOLD_AFTER_S = 1200
"""A chunk is written anew at every fold: seldom enough to write little, often enough that readers find few
slices."""
SPREAD_S = 300
"""Nodes that began at the same moment are not folded at the same moment."""
NEWEST_S = 120
"""Slices younger than this stay: `latest` reads them."""
MOST_SLICES = 720
WORKED_S = 20.0
"""A tick that has worked for so long leaves the rest to the next one."""
LONGEST_S = max(POINTS)

_Key = tuple[str, int, int]
_folding = threading.Lock()


def tick(now: float) -> int:
    """Fold the nodes whose turn has come, those that wait longest first; how many were folded."""
    if not _folding.acquire(blocking=False):
        return 0
    try:
        return _fold_due(now, time.monotonic() + WORKED_S)
    finally:
        _folding.release()


def fold(node_id: int, now: float) -> int:
    """Fold what the node has told up to NEWEST_S ago; how many slices."""
    # Older buckets than are kept would find the chunks gone that the longer steps are worked out from.
    since, until, folded = int(now) - retention_s()[BUCKET_S], int(now) - NEWEST_S, 0
    while batch := _fold_batch(node_id, since, until):
        folded += batch
        if batch < MOST_SLICES:
            break
    return folded


def _fold_due(now: float, until: float) -> int:
    oldest = TelemetrySlice.objects.filter(
        usable(SLICE_VERSION), start__lt=int(now) - FOLD_AFTER_S
    ).order_by()
    waiting = (
        oldest.values("node").annotate(first=Min("start")).order_by("first").values_list("node", "first")
    )
    folded = 0
    for node_id, first in waiting:
        if time.monotonic() > until:
            break
        if first >= now - FOLD_AFTER_S - node_id * 37 % SPREAD_S:
            continue
        try:
            folded += bool(fold(node_id, now))
        except DatabaseError:
            raise
        except Exception:
            log.exception("What node %s measured could not be folded; the others go on", node_id)
    return folded


def _fold_batch(node_id: int, since: int, until: int) -> int:
    with transaction.atomic():
        # Whoever else folds this node waits here, and then finds these slices gone.
        ripe = TelemetrySlice.objects.select_for_update().filter(
            usable(SLICE_VERSION),
            Q(start__gte=since) | Q(set_aside__isnull=False),
            node_id=node_id,
            start__lt=until,
        )
        slices = list(ripe.order_by("start").values_list("pk", "start", "data")[:MOST_SLICES])
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


def _merged(node_id: int, news: Mapping[str, Chunk]) -> tuple[dict[_Key, Chunk], dict[_Key, int]]:
    """All chunks that the news change, of every step; and those that only a newer hub can change, with their
    versions."""
    touched = {
        (subject, BUCKET_S, start) for subject, chunk in news.items() for start in _spans(chunk, BUCKET_S)
    }
    longer = {
        (subject, step, start)
        for subject, chunk in news.items()
        for step in POINTS
        if step != BUCKET_S
        for start in _spans(chunk, step)
    }
    held, blocked = _held(node_id, touched | longer)
    changed: dict[_Key, Chunk] = {}
    for key in sorted(touched):
        if key in blocked:
            continue  # the longer steps are worked out from this chunk
        subject, _, start = key
        old = held.get(key) or empty_chunk(start, BUCKET_S, POINTS[BUCKET_S], ())
        changed[key] = fine = _with_news(old, news[subject])
        for step in POINTS:
            if step != BUCKET_S:
                place = (subject, step, start // span_s(step) * span_s(step))
                if place in blocked:
                    continue
                before = changed.get(place) or held.get(place) or empty_chunk(place[2], step, POINTS[step], ())
                changed[place] = _refolded(before, fine, news[subject])
    return changed, blocked


def _spans(chunk: Chunk, step_s: int) -> Iterable[int]:
    """The starts of the stored chunks of that step in which the chunk knows something."""
    span = span_s(step_s)
    moments = chunk.start + np.flatnonzero(chunk.count.any(axis=0)) * chunk.step_s
    return [int(start) for start in np.unique(moments // span * span)]


def _held(node_id: int, keys: Iterable[_Key]) -> tuple[dict[_Key, Chunk], dict[_Key, int]]:
    """The stored chunks of these keys, and the versions of those in a newer hub's format.

    A chunk of our own format that cannot be read is neither: it is logged and replaced. To keep it would keep
    all new numbers of its span, up to two days, from being shown."""
    wanted = set(keys)
    subjects, steps, starts = ({key[place] for key in wanted} for place in range(3))
    rows = TelemetryChunk.objects.select_for_update().filter(
        node_id=node_id, subject__in=subjects, step_s__in=steps, start__in=starts
    )
    held: dict[_Key, Chunk] = {}
    newer: dict[_Key, int] = {}
    for subject, step_s, start, data in rows.order_by("pk").values_list("subject", "step_s", "start", "data"):
        if (subject, step_s, start) in wanted:
            try:
                held[subject, step_s, start] = read_chunk(bytes(data), start)
            except PackingError as error:
                if error.version != CORRUPT:
                    newer[subject, step_s, start] = error.version
                    continue
                log.error(
                    "What was stored of %r from %s on, in steps of %s s, is lost: %s",
                    subject,
                    start,
                    step_s,
                    error,
                )
    return held, newer


def _with_news(old: Chunk, news: Chunk) -> Chunk:
    """The old chunk with what the news know of its span; the longer rows of metrics where there are new
    ones."""
    metrics = tuple(dict.fromkeys((*old.metrics, *news.metrics)))
    out = empty_chunk(old.start, old.step_s, old.points, metrics)
    rows = len(old.metrics)
    out.mean[:rows], out.max[:rows], out.count[:rows] = old.mean, old.max, old.count
    first, last = max(old.start, news.start), min(old.end, news.end)
    here = slice((first - old.start) // old.step_s, (last - old.start) // old.step_s)
    there = slice((first - news.start) // old.step_s, (last - news.start) // old.step_s)
    for row, name in enumerate(news.metrics):
        known = news.count[row, there] > 0
        place = metrics.index(name)
        out.mean[place, here][known] = news.mean[row, there][known]
        out.max[place, here][known] = news.max[row, there][known]
        out.count[place, here][known] = 1
    return out


def _refolded(before: Chunk, fine: Chunk, news: Chunk) -> Chunk:
    """The chunk of a longer step with the windows that the news touch worked out anew from `fine`, which
    holds them whole."""
    step = before.step_s
    first = max(fine.start, news.start) // step * step
    last = -(-min(fine.end, news.end) // step) * step
    metrics = tuple(dict.fromkeys((*before.metrics, *fine.metrics)))
    out = empty_chunk(before.start, step, before.points, metrics)
    rows = len(before.metrics)
    out.mean[:rows], out.max[:rows], out.count[:rows] = before.mean, before.max, before.count
    here = slice((first - before.start) // step, (last - before.start) // step)
    there = slice((first - fine.start) // BUCKET_S, (last - fine.start) // BUCKET_S)
    shape = (len(fine.metrics), (last - first) // step, step // BUCKET_S)
    mean, most, known = (matrix[:, there].reshape(shape) for matrix in (fine.mean, fine.max, fine.count > 0))
    count = known.sum(axis=2, dtype=np.uint16)
    total = np.where(known, mean, 0).sum(axis=2, dtype=np.float64)
    places = [metrics.index(name) for name in fine.metrics]
    # Where the shortest step has expired, `fine` holds less of a window than was known when it was worked out
    # before.
    better = count >= out.count[places, here]
    new_mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    out.mean[places, here] = np.where(better, new_mean, out.mean[places, here])
    out.max[places, here] = np.where(better, np.fmax.reduce(most, axis=2), out.max[places, here])
    out.count[places, here] = np.where(better, count, out.count[places, here])
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
