"""The tasks that the worker runs periodically. Imports no Django, because the settings import this module."""

from __future__ import annotations

from typing import Any

from workspaces.task_names import TaskName

# Name of the entry -> Celery task and seconds between two of its runs.
PERIODIC_TASKS: dict[str, tuple[TaskName, float]] = {
    "watch": (TaskName.WATCH, 2.0),
    "reap": (TaskName.REAP, 5.0),
    # Half of the calls of a Slurm that it may get, one in 5 s; the others are for its page.
    "tend-backends": (TaskName.TEND_BACKENDS, 10.0),
    "end-abandoned-runs": (TaskName.END_ABANDONED_RUNS, 60.0),
    "tend-machines": (TaskName.TEND_MACHINES, 2.0),
    "tend-rollouts": (TaskName.TEND_ROLLOUTS, 20.0),
    "tend-relays": (TaskName.TEND_RELAYS, 5.0),
    "mend-brokers": (TaskName.MEND_BROKERS, 20.0),
    "fold-telemetry": (TaskName.FOLD_TELEMETRY, 30.0),
    "fold-metrics": (TaskName.FOLD_METRICS, 60.0),
    "read-events": (TaskName.READ_EVENTS, 2.0),
    "keep-curves": (TaskName.KEEP_CURVES, 20.0),
    "ship-logs": (TaskName.SHIP_LOGS, 2.0),
    "archive-logs": (TaskName.ARCHIVE_LOGS, 60.0),
    "expire-telemetry": (TaskName.EXPIRE_TELEMETRY, 3600.0),
    "evaluate-alerts": (TaskName.EVALUATE_ALERTS, 10.0),
    "forget-alerts": (TaskName.FORGET_ALERTS, 86400.0),
    "deliver": (TaskName.DELIVER, 5.0),
    "send-mails": (TaskName.SEND_MAILS, 3.0),
    "seal-audit-trail": (TaskName.SEAL_AUDIT_TRAIL, 5.0),
    "delete-old-audit-events": (TaskName.DELETE_OLD_AUDIT_EVENTS, 86400.0),
    "forget-deliveries": (TaskName.FORGET_DELIVERIES, 86400.0),
    "purge": (TaskName.PURGE, 3600.0),
    "apply-retention": (TaskName.APPLY_RETENTION, 3600.0),
    "resolve-missed-environments": (TaskName.RESOLVE_MISSED, 10.0),
    "list-missed-datasets": (TaskName.LIST_MISSED, 10.0),
    "fetch-environment-files": (TaskName.FETCH_FILES, 60.0),
    "settle-exports": (TaskName.SETTLE_EXPORTS, 10.0),
    "scan-missed": (TaskName.SCAN_MISSED, 60.0),
    "account-usage": (TaskName.ACCOUNT_USAGE, 60.0),
    "account-past-usage": (TaskName.ACCOUNT_PAST_USAGE, 3600.0),
    # As the page of quotas says (jobs.quotas.disk_use.MEASURE_INTERVAL_S).
    "measure-disk": (TaskName.MEASURE_DISK, 300.0),
    "sweep-blobs": (TaskName.SWEEP_BLOBS, 21600.0),
    "upload-blobs": (TaskName.UPLOAD_BLOBS, 5.0),
    "seal-blobs": (TaskName.SEAL_BLOBS, 60.0),
    "forget-sign-in-attempts": (TaskName.FORGET_SIGN_IN_ATTEMPTS, 3600.0),
    "clear-sessions": (TaskName.CLEAR_SESSIONS, 86400.0),
}

# Tasks that run at least this often are run by the worker's own threads. For such a task beat and a message
# through the broker cost 10 ms of CPU each time, several times what it costs while nothing happens. Those of
# an hour and more stay with beat, which remembers over restarts when each ran last.
LOCAL_INTERVAL_S = 60.0


def local_tasks() -> dict[TaskName, float]:
    """Returns the names of the Celery tasks that the worker runs without beat, with their intervals in
    seconds."""
    return {
        task: interval_s for task, interval_s in PERIODIC_TASKS.values() if interval_s <= LOCAL_INTERVAL_S
    }


def beat_schedule() -> dict[str, dict[str, Any]]:
    """Returns CELERY_BEAT_SCHEDULE with all other periodic tasks. Nothing reads their results."""
    return {
        name: {"task": task, "schedule": interval_s, "options": {"ignore_result": True}}
        for name, (task, interval_s) in PERIODIC_TASKS.items()
        if interval_s > LOCAL_INTERVAL_S
    }
