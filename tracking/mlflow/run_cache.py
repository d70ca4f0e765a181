"""Short-lived cache of the runs that scripts log to: a script logs hundreds of times a second."""

from __future__ import annotations

import threading

from cachetools import TTLCache

from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow.lookup import check_writable, run_missing
from workspaces.http.threads import in_thread

# Clients may log this long to a run that another process has deleted.
CACHE_S = 3.0
MAX_CACHED_RUNS = 10_000
_FIELDS = (
    "id",
    "number",
    "workspace_id",
    "experiment_id",
    "parent_id",
    "kind",
    "created_by_id",
    "deleted_at",
)

_lock = threading.Lock()
_cache: TTLCache[str, Run] = TTLCache(MAX_CACHED_RUNS, CACHE_S)


async def writable(caller: Caller, run_id: str) -> Run:
    """Returns a run that the caller may log to, with only _FIELDS loaded. Raises MlflowError."""
    with _lock:
        run = _cache.get(run_id)
    if run is None:
        run = await in_thread(_load_run, run_id)
        if run is None:
            raise run_missing(run_id)
        # If the run is deleted between the query and this line, the entry is outdated for at most CACHE_S
        # seconds.
        with _lock:
            _cache[run_id] = run
    # Only the row is cached; permissions are checked for every call.
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
