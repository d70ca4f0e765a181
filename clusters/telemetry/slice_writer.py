"""Writes slices to the database, for all nodes together once a second (`workspaces.background_loop`).

Slices are acknowledged only when they are stored. While the database is unavailable they wait here up to
MAX_WAITING_BYTES; beyond that they stay on the nodes, which keep the last hour."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import IntegrityError

from clusters.models import Node, TelemetrySlice
from workspaces import background_loop, process_caches

log = logging.getLogger(__name__)
MAX_WAITING_BYTES = 64 * 2**20
# Stored buckets that are remembered per node: slightly more than the hour that the node keeps.
MAX_REMEMBERED = 400
BATCH = 500
# Node id and start of the bucket.
SliceKey = tuple[int, int]

_lock = threading.Lock()
_waiting: dict[SliceKey, bytes] = {}
_waiting_bytes = 0
_stored: defaultdict[int, dict[int, None]] = defaultdict(dict)
_is_full = False


def stored_starts(node_id: int) -> Collection[int]:
    """Returns the starts of the node's buckets that this process has stored."""
    return _stored[node_id].keys() if node_id in _stored else ()


def is_waiting(node_id: int, start: int) -> bool:
    return (node_id, start) in _waiting


def put(node_id: int, slices: Mapping[int, bytes]) -> Collection[int]:
    """Queues slices for the next write and returns no starts. Without a background loop it writes the slices
    at once and returns all their starts."""
    global _waiting_bytes, _is_full  # noqa: PLW0603 - guarded by the lock
    if not background_loop.is_running():
        _write({(node_id, start): data for start, data in slices.items()})
        return slices.keys()
    with _lock:
        for start, data in slices.items():
            if (node_id, start) in _waiting:
                continue
            if _waiting_bytes + len(data) > MAX_WAITING_BYTES:
                if not _is_full:
                    log.error(
                        "Too much telemetry waits for the database; no more is accepted until it is stored. "
                        "Nodes keep the last hour."
                    )
                _is_full = True
                break
            _waiting[node_id, start] = data
            _waiting_bytes += len(data)
    return ()


def write() -> None:
    """Stores all queued slices; the background loop calls this once a second."""
    global _waiting_bytes, _is_full  # noqa: PLW0603 - guarded by the lock
    with _lock:
        batch = dict(_waiting)
    # Outside the lock, so that reports do not wait for the database. The entries stay in `_waiting` until
    # they are stored, so that `is_waiting` always finds them.
    _write(batch)
    with _lock:
        for key, data in batch.items():
            if _waiting.pop(key, None) is not None:
                _waiting_bytes -= len(data)
            remembered = _stored[key[0]]
            remembered[key[1]] = None
            if len(remembered) > MAX_REMEMBERED:
                del remembered[next(iter(remembered))]
        _is_full = False


@process_caches.register
def clear_cache() -> None:
    global _waiting_bytes, _is_full
    with _lock:
        _waiting.clear()
        _stored.clear()
        _waiting_bytes, _is_full = 0, False


def _write(slices: Mapping[SliceKey, bytes]) -> None:
    try:
        _insert(slices)
    except IntegrityError:
        # A node that was deleted in the meantime must not block the slices of the others.
        existing = set(Node.objects.filter(pk__in={node for node, _ in slices}).values_list("pk", flat=True))
        _insert({key: data for key, data in slices.items() if key[0] in existing})


def _insert(slices: Mapping[SliceKey, bytes]) -> None:
    rows = [TelemetrySlice(node_id=node, start=start, data=data) for (node, start), data in slices.items()]
    # A bucket that a node sends again is stored already, and its first version stays.
    TelemetrySlice.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
