"""Writes points: directly, or from the event loop in one transaction with those of other requests."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import close_old_connections
from django.utils import timezone

from tracking.metrics import compaction, limits, point_hints
from tracking.metrics.point_store import PointBatch, store_batches
from tracking.metrics.points import Point, group_by_key

__all__ = ["Point", "append", "append_soon"]

log = logging.getLogger(__name__)
# Maximum number of requests that share a transaction.
MAX_BATCHES = 256


def append(run_id: str, experiment_id: int, points: Sequence[Point]) -> None:
    """Stores points in one transaction. Raises MetricLimitExceeded."""
    if not points:
        return
    batch = _batch(run_id, experiment_id, points)
    reservation = limits.reserve(run_id, batch.curves.keys(), len(points))
    try:
        store_batches([batch])
    except BaseException:
        limits.cancel(reservation)
        raise
    limits.confirm(reservation)
    _after_store(batch)


async def append_soon(run_id: str, experiment_id: int, points: Sequence[Point]) -> None:
    """Stores points from the event loop; returns once they are stored. Concurrent requests share a
    transaction. Raises MetricLimitExceeded."""
    if not points:
        return
    pending = _PendingWrite(
        _batch(run_id, experiment_id, points), asyncio.get_running_loop(), asyncio.Future()
    )
    _writer().put(pending)
    await pending.done


@dataclass(frozen=True)
class _PendingWrite:
    batch: PointBatch
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]

    def finish(self, error: BaseException | None) -> None:
        # The future belongs to the event loop, and this is the writer's thread.
        self.loop.call_soon_threadsafe(self._set, error)

    def _set(self, error: BaseException | None) -> None:
        if self.done.done():
            return  # the request was cancelled
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class _Writer(threading.Thread):
    """A thread with one connection that writes the queued requests, up to MAX_BATCHES in one transaction."""

    def __init__(self) -> None:
        super().__init__(name="metrics", daemon=True)
        self._queue: queue.SimpleQueue[_PendingWrite] = queue.SimpleQueue()
        self.put: Callable[[_PendingWrite], None] = self._queue.put

    def run(self) -> None:
        while True:
            self._write(self._next())

    def _next(self) -> list[_PendingWrite]:
        # Waits for the first request and takes what has come meanwhile: the more load, the larger the
        # transactions.
        batch = [self._queue.get()]
        while len(batch) < MAX_BATCHES:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _write(self, pending: Sequence[_PendingWrite]) -> None:
        reserved = [(item, room) for item in pending if (room := _reserve(item)) is not None]
        if not reserved:
            return
        allowed = [item for item, _ in reserved]
        try:
            store_batches([item.batch for item in allowed])
        except Exception as error:
            # The error may be a lost connection, which Django would use again.
            close_old_connections()
            for _, room in reserved:
                limits.cancel(room)
            if len(allowed) == 1:
                allowed[0].finish(error)
                return
            # One failing request, such as for a purged run, must not discard the points of the others.
            for item in allowed:
                self._write([item])
            return
        for item, room in reserved:
            limits.confirm(room)
            item.finish(None)
            _after_store(item.batch)


def _reserve(item: _PendingWrite) -> limits.Reservation | None:
    """Reserves room for the points; on an error it fails the request and returns None."""
    points = sum(map(len, item.batch.curves.values()))
    try:
        return limits.reserve(item.batch.run_id, item.batch.curves.keys(), points)
    except Exception as error:
        close_old_connections()
        item.finish(error)
        return None


def _batch(run_id: str, experiment_id: int, points: Sequence[Point]) -> PointBatch:
    return PointBatch(run_id, experiment_id, group_by_key(points), timezone.now())


def _after_store(batch: PointBatch) -> None:
    compaction.record_slice(batch.run_id, len(batch.curves), sum(map(len, batch.curves.values())))
    point_hints.points_added(batch.run_id, batch.curves)


_lock = threading.Lock()
_writers: list[_Writer] = []


def _writer() -> _Writer:
    with _lock:
        if not _writers or not _writers[0].is_alive():
            _writers[:] = [_Writer()]
            _writers[0].start()
        return _writers[0]
