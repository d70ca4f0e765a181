"""The tasks that beat sends periodically. No Django here: the settings import this module."""

from __future__ import annotations

from typing import Any

PERIODIC_TASKS: dict[str, tuple[str, float]] = {
    "watch": ("jobs.tasks.watch", 2.0),
    "reap": ("jobs.tasks.reap", 5.0),
    "tend-machines": ("clusters.tasks.tend_machines", 2.0),
    "mend-brokers": ("clusters.tasks.mend_brokers", 20.0),
    "fold-telemetry": ("clusters.tasks.fold_telemetry", 30.0),
    "fold-metrics": ("tracking.tasks.fold_metrics", 60.0),
    "read-events": ("tracking.tasks.read_events", 2.0),
    "keep-curves": ("jobs.tasks.keep_curves", 20.0),
    "expire-telemetry": ("clusters.tasks.expire_telemetry", 3600.0),
    "evaluate-alerts": ("clusters.tasks.evaluate_alerts", 10.0),
    "forget-alerts": ("clusters.tasks.forget_alerts", 86400.0),
    "deliver": ("workspaces.tasks.deliver", 5.0),
    "forget-deliveries": ("workspaces.tasks.forget_deliveries", 86400.0),
    "purge": ("trainhub.tasks.purge", 3600.0),
    "settle-exports": ("registry.tasks.settle_exports", 10.0),
    "scan-missed": ("registry.tasks.scan_missed", 60.0),
    "account-usage": ("tracking.tasks.account_usage", 60.0),
    "account-past-usage": ("tracking.tasks.account_past_usage", 3600.0),
    "sweep-blobs": ("trainhub.tasks.sweep_blobs", 21600.0),
    "seal-blobs": ("trainhub.tasks.seal_blobs", 60.0),
    "forget-sign-in-attempts": ("workspaces.tasks.forget_sign_in_attempts", 3600.0),
    "clear-sessions": ("trainhub.tasks.clear_sessions", 86400.0),
}
"""Name of the entry -> Celery task and seconds between two of its runs."""


def beat_schedule() -> dict[str, dict[str, Any]]:
    """Returns CELERY_BEAT_SCHEDULE. No periodic task has a result that anything reads."""
    return {
        name: {"task": task, "schedule": interval_s, "options": {"ignore_result": True}}
        for name, (task, interval_s) in PERIODIC_TASKS.items()
    }
