"""Work that only one worker of the hub does at a time, wherever it was requested."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from workspaces.servers import round_lease
from workspaces.servers.server_registry import is_shareable

LEASE_S = 60.0
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def only_once(name: str, lease_s: float = LEASE_S) -> Iterator[bool]:
    """Yields whether the caller may do the work `name` now: no other thread and no other worker does.

    It lasts at most `lease_s`: should the worker be killed meanwhile, another one waits for so long."""
    lock = _locks[name]
    if not lock.acquire(blocking=False):
        yield False
        return
    try:
        if not is_shareable():
            yield True
            return
        holder = round_lease.own_holder()
        if not round_lease.take_lease(name, holder, lease_s):
            yield False
            return
        try:
            yield True
        finally:
            round_lease.free_lease(name, holder)
    finally:
        lock.release()
