"""Runs that are being logged to, kept in mind for a moment: a script logs hundreds of times a second."""

from __future__ import annotations

import threading
import time

from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow.lookup import no_run, permitted
from workspaces.http.threads import in_thread

KNOWN_S = 3.0
"""So long something may still be logged to a run that another process has deleted."""
MOST_KNOWN = 10_000
_FIELDS = ("id", "number", "workspace_id", "experiment_id", "parent_id", "kind", "deleted_at")

_lock = threading.Lock()
_known: dict[str, tuple[Run, float]] = {}


async def writable(caller: Caller, run_id: str) -> Run:
    """A run that the caller may log to, or an MlflowError. Only its ids are known."""
    known = _known.get(run_id)
    if known is not None and time.monotonic() < known[1]:
        return permitted(caller, known[0])
    found = await in_thread(_look_up, run_id)
    if found is None:
        raise no_run(run_id)
    with _lock:
        if len(_known) > MOST_KNOWN:
            _known.clear()
        _known[run_id] = found, time.monotonic() + KNOWN_S
    return permitted(caller, found)


def forget(run_id: str | None = None) -> None:
    """It was deleted or restored, or came under another parent; None: forget all."""
    with _lock:
        if run_id is None:
            _known.clear()
        else:
            _known.pop(run_id, None)


def _look_up(run_id: str) -> Run | None:
    return Run.objects.filter(pk=run_id).only(*_FIELDS).first()
