"""Slices on their way to the database: written for all nodes together, once a second
(`workspaces.background_loop`).

Nothing is acknowledged before it is stored; while the database is away slices wait here up to a bound, and
beyond it on the nodes, which keep the last hour."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import IntegrityError

from clusters.models import Node, TelemetrySlice
from workspaces import background_loop, process_caches

log = logging.getLogger(__name__)
MOST_WAITING_BYTES = 64 * 2**20
REMEMBERED = 400
"""Buckets of a node that are known to be stored: a little more than the hour that it keeps."""
BATCH = 500
Key = tuple[int, int]
"""Node and start of the bucket."""

_lock = threading.Lock()
_waiting: dict[Key, bytes] = {}
_waiting_bytes = 0
_stored: defaultdict[int, dict[int, None]] = defaultdict(dict)
_is_full = False


def stored_starts(node_id: int) -> Collection[int]:
    """Starts of the node's buckets that are known to be stored."""
    return _stored[node_id].keys() if node_id in _stored else ()


def is_waiting(node_id: int, start: int) -> bool:
    return (node_id, start) in _waiting


def put(node_id: int, slices: Mapping[int, bytes]) -> Collection[int]:
    """Have them stored; the starts of those that are now: all of them where no rounds are going."""
    global _waiting_bytes, _is_full  # noqa: PLW0603 - guarded by the lock
    if not background_loop.is_running():
        _write({(node_id, start): data for start, data in slices.items()})
        return slices.keys()
    with _lock:
        for start, data in slices.items():
            if (node_id, start) in _waiting:
                continue
            if _waiting_bytes + len(data) > MOST_WAITING_BYTES:
                if not _is_full:
                    log.error(
                        "Numbers wait for the database, and no more are taken until it stores those; nodes "
                        "keep an hour."
                    )
                _is_full = True
                break
            _waiting[node_id, start] = data
            _waiting_bytes += len(data)
    return ()


def write() -> None:
    """A round: store all that waits."""
    global _waiting_bytes, _is_full  # noqa: PLW0603 - guarded by the lock
    with _lock:
        taken = dict(_waiting)
    if not taken:
        return
    _write(taken)
    with _lock:
        for key, data in taken.items():
            if _waiting.pop(key, None) is not None:
                _waiting_bytes -= len(data)
            known = _stored[key[0]]
            known[key[1]] = None
            if len(known) > REMEMBERED:
                del known[next(iter(known))]
        _is_full = False


@process_caches.register
def clear_cache() -> None:
    global _waiting_bytes, _is_full
    with _lock:
        _waiting.clear()
        _stored.clear()
        _waiting_bytes, _is_full = 0, False


def _write(slices: Mapping[Key, bytes]) -> None:
    try:
        _insert(slices)
    except IntegrityError:
        # A node that was removed meanwhile must not keep back what the others told.
        there = set(Node.objects.filter(pk__in={node for node, _ in slices}).values_list("pk", flat=True))
        _insert({key: data for key, data in slices.items() if key[0] in there})


def _insert(slices: Mapping[Key, bytes]) -> None:
    rows = [TelemetrySlice(node_id=node, start=start, data=data) for (node, start), data in slices.items()]
    TelemetrySlice.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
