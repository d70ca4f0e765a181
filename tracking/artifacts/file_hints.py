"""Live messages to open pages when the files or histograms of a run change: at most one a second for
each run."""

from __future__ import annotations

import threading

from live.messages import ArtifactsChanged
from live.publish import publish, publish_on_commit
from live.topics import run_topic
from workspaces import background_loop

_lock = threading.Lock()
_changed_runs: set[str] = set()


def files_changed(run_id: str) -> None:
    """Records that files or histograms of the run were stored or deleted, or will be when the transaction
    commits."""
    # Without the loop, as in a worker or a command, nothing would publish the message later.
    if not background_loop.is_running():
        publish_on_commit(run_topic(run_id), _message(run_id))
        return
    with _lock:
        _changed_runs.add(run_id)


def flush() -> None:
    """Publishes the collected changes; the background loop calls it once a second."""
    with _lock:
        due = sorted(_changed_runs)
        _changed_runs.clear()
    for run_id in due:
        publish(run_topic(run_id), _message(run_id))


def _message(run_id: str) -> ArtifactsChanged:
    return {"type": "artifacts.changed", "run": run_id}
