"""Runs that are being logged to, kept in mind for a moment: a script logs hundreds of times a second."""

from __future__ import annotations

import threading
import time

from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow.lookup import no_run, permitted
from workspaces.http.threads import in_thread

CACHE_S = 3.0
"""So long something may still be logged to a run that another process has deleted."""
MAX_CACHED_RUNS = 10_000
_FIELDS = ("id", "number", "workspace_id", "experiment_id", "parent_id", "kind", "deleted_at")

_lock = threading.Lock()
_cache: dict[str, tuple[Run, float]] = {}


async def writable(caller: Caller, run_id: str) -> Run:
    """A run that the caller may log to, or an MlflowError. Only its ids are known."""
    entry = _cache.get(run_id)
    if entry is not None and time.monotonic() < entry[1]:
        return permitted(caller, entry[0])
    run = await in_thread(_load_run, run_id)
    if run is None:
        raise no_run(run_id)
    with _lock:
        if len(_cache) > MAX_CACHED_RUNS:
            _cache.clear()
        _cache[run_id] = run, time.monotonic() + CACHE_S
    return permitted(caller, run)


def forget(run_id: str | None = None) -> None:
    """It was deleted or restored, or came under another parent; None: forget all."""
    with _lock:
        if run_id is None:
            _cache.clear()
        else:
            _cache.pop(run_id, None)


def _load_run(run_id: str) -> Run | None:
    return Run.objects.filter(pk=run_id).only(*_FIELDS).first()
