"""Deletes files below DATA_DIR/runs. Rows of logs that lie among the stored files are deleted with the other
rows of a run (jobs.retention.purge_registry, jobs.retention_rules.data_tables), and their files with them."""

from __future__ import annotations

import contextlib
import shutil

from jobs.logs import log_store


def remove_run(run_id: str) -> None:
    """Deletes all files that the hub stores for this run."""
    root = log_store.run_folder(run_id)
    if root.exists():
        shutil.rmtree(root)


def remove_logs(run_id: str) -> None:
    """Deletes the logs of an ended run with their times, of all attempts, and marks them as complete. Keeps
    event files and the lists of installed packages."""
    for attempt in _stored_attempts(run_id):
        # First, so that nobody waits for the rest of a log.
        log_store.close(run_id, attempt)
        folder = log_store.run_folder(run_id, attempt)
        for name in log_store.log_sizes(run_id, attempt):
            (folder / "logs" / name).unlink(missing_ok=True)
        if (folder / "arrivals").exists():
            shutil.rmtree(folder / "arrivals")


def remove_event_files(run_id: str) -> None:
    """Deletes TensorBoard's event files of an ended run, of all attempts."""
    for attempt in _stored_attempts(run_id):
        for name in log_store.event_file_sizes(run_id, attempt):
            (log_store.run_folder(run_id, attempt) / "logs" / name).unlink(missing_ok=True)


def _stored_attempts(run_id: str) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [int(entry.name) for entry in log_store.run_folder(run_id).iterdir() if entry.name.isdecimal()]
    return []
