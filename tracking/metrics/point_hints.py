"""Live messages to open pages about new points: the first at once, then at most two a second for each run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from live.messages import MetricsAdded
from live.publish import publish, publish_on_commit
from live.topics import run_topic
from workspaces import background_loop

INTERVAL_S = 0.5
# Keys that one message names; without keys a page reloads all its curves.
MAX_KEYS = 200

_lock = threading.Lock()
_published_at: dict[str, float] = {}
_pending_keys: dict[str, set[str]] = {}


def points_added(run_id: str, keys: Iterable[str]) -> None:
    """Records that points of these curves were stored, or will be when the transaction commits."""
    # Without the loop nobody would publish a delayed message: a worker or a command.
    if not background_loop.is_running():
        publish_on_commit(run_topic(run_id), _message(run_id, set(keys)))
        return
    now = time.monotonic()
    with _lock:
        if now - _published_at.get(run_id, 0.0) < INTERVAL_S:
            _pending_keys.setdefault(run_id, set()).update(keys)
            return
        _published_at[run_id] = now
        pending = _pending_keys.pop(run_id, set()) | set(keys)
    publish(run_topic(run_id), _message(run_id, pending))


def flush() -> None:
    """Publishes delayed messages; the background loop calls it."""
    with _lock:
        due, now = dict(_pending_keys), time.monotonic()
        _pending_keys.clear()
        # The table holds only runs that logged within the last moments.
        for run_id in [run_id for run_id, at in _published_at.items() if now - at > INTERVAL_S]:
            del _published_at[run_id]
        _published_at.update(dict.fromkeys(due, now))
    for run_id, keys in due.items():
        publish(run_topic(run_id), _message(run_id, keys))


def _message(run_id: str, keys: set[str]) -> MetricsAdded:
    return {"type": "metrics.added", "run": run_id, "keys": sorted(keys) if len(keys) <= MAX_KEYS else []}
