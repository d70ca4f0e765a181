"""Telling open pages that a run has other files than before: at most once a second for each run."""

from __future__ import annotations

import threading

from live.messages import ArtifactsChanged
from live.publish import publish, publish_on_commit
from live.topics import run_topic
from workspaces import background_loop

_lock = threading.Lock()
_waiting: set[str] = set()


def changed(run_id: str) -> None:
    """Files have been stored or deleted, or will be once the transaction commits."""
    if not background_loop.is_running():
        publish_on_commit(run_topic(run_id), _message(run_id))
        return
    with _lock:
        _waiting.add(run_id)


def flush() -> None:
    """A round: tell what has come together."""
    with _lock:
        due = sorted(_waiting)
        _waiting.clear()
    for run_id in due:
        publish(run_topic(run_id), _message(run_id))


def _message(run_id: str) -> ArtifactsChanged:
    return {"type": "artifacts.changed", "run": run_id}
