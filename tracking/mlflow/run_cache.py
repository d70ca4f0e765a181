"""Short-lived cache of the runs that scripts log to: a script logs hundreds of times a second."""

from __future__ import annotations

import threading
import time

from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow.lookup import check_writable, run_missing
from workspaces.http.threads import in_thread

CACHE_S = 3.0
"""Clients may log this long to a run that another process has deleted."""
MAX_CACHED_RUNS = 10_000
_FIELDS = ("id", "number", "workspace_id", "experiment_id", "parent_id", "kind", "deleted_at")

_lock = threading.Lock()
_cache: dict[str, tuple[Run, float]] = {}


async def writable(caller: Caller, run_id: str) -> Run:
    """Returns a run that the caller may log to, with only _FIELDS loaded. Raises MlflowError."""
    entry = _cache.get(run_id)
    if entry is not None and time.monotonic() < entry[1]:
        return check_writable(caller, entry[0])
    run = await in_thread(_load_run, run_id)
    if run is None:
        raise run_missing(run_id)
    with _lock:
        if len(_cache) > MAX_CACHED_RUNS:
            _cache.clear()
        _cache[run_id] = run, time.monotonic() + CACHE_S
    return check_writable(caller, run)


def forget_run(run_id: str | None = None) -> None:
    """Removes a run from the cache after it was deleted, restored or given another parent; None removes
    all."""
    with _lock:
        if run_id is None:
            _cache.clear()
        else:
            _cache.pop(run_id, None)


def _load_run(run_id: str) -> Run | None:
    return Run.objects.filter(pk=run_id).only(*_FIELDS).first()
