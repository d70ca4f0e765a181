"""Names of all Celery tasks, for those who send or schedule them without importing what they do.

Messages and Celery's records of the last run hold these names: a renamed task keeps its old name for one
version. No Django here: the settings import this module."""

from __future__ import annotations

from enum import StrEnum

# The header of a message with the time at which it was sent, in seconds since 1970.
SENT_AT = "trainhub_sent_at"


class TaskName(StrEnum):
    EVALUATE_ALERTS = "clusters.tasks.evaluate_alerts"
    EXPIRE_TELEMETRY = "clusters.tasks.expire_telemetry"
    FOLD_TELEMETRY = "clusters.tasks.fold_telemetry"
    FORGET_ALERTS = "clusters.tasks.forget_alerts"
    MEND_BROKERS = "clusters.tasks.mend_brokers"
    TEND_MACHINES = "clusters.tasks.tend_machines"
    TEND_ROLLOUTS = "clusters.tasks.tend_rollouts"
    TEND_RELAYS = "clusters.tasks.tend_relays"
    LIST_MISSED = "datastores.tasks.list_missed"
    LIST_VERSION = "datastores.tasks.list_version"
    TEST_DATASTORE = "datastores.tasks.test_datastore"
    RESOLVE_ENVIRONMENT = "environments.tasks.resolve_environment"
    RESOLVE_MISSED = "environments.tasks.resolve_missed"
    ADVANCE_LISTING = "jobs.tasks.advance_listing"
    ADVANCE_VERSION = "jobs.tasks.advance_version"
    ARCHIVE_LOGS = "jobs.tasks.archive_logs"
    CANCEL_OUTSIDE = "jobs.tasks.cancel_outside"
    END_ABANDONED_RUNS = "jobs.tasks.end_abandoned_runs"
    FETCH_FILES = "jobs.tasks.fetch_files"
    OFFER_BUILD = "jobs.tasks.offer_build"
    OFFER_DATA_ORDERS = "jobs.tasks.offer_data_orders"
    KEEP_CURVES = "jobs.tasks.keep_curves"
    LAUNCH_QUEUED = "jobs.tasks.launch_queued"
    MEASURE_DISK = "jobs.tasks.measure_disk"
    LAUNCH_RUN = "jobs.tasks.launch_run"
    REAP = "jobs.tasks.reap"
    SHIP_LOGS = "jobs.tasks.ship_logs"
    SEND_TRACE = "jobs.tasks.send_trace"
    TEND_BACKENDS = "jobs.tasks.tend_backends"
    WATCH = "jobs.tasks.watch"
    FILL_VERSIONS = "registry.tasks.fill_versions"
    SCAN_MISSED = "registry.tasks.scan_missed"
    SCAN_VERSION = "registry.tasks.scan_version"
    SETTLE_EXPORTS = "registry.tasks.settle_exports"
    ACCOUNT_PAST_USAGE = "tracking.tasks.account_past_usage"
    ACCOUNT_USAGE = "tracking.tasks.account_usage"
    FOLD_METRICS = "tracking.tasks.fold_metrics"
    READ_EVENTS = "tracking.tasks.read_events"
    CLEAR_SESSIONS = "trainhub.tasks.clear_sessions"
    APPLY_RETENTION = "trainhub.tasks.apply_retention"
    PURGE = "trainhub.tasks.purge"
    SEAL_BLOBS = "trainhub.tasks.seal_blobs"
    SWEEP_BLOBS = "trainhub.tasks.sweep_blobs"
    UPLOAD_BLOBS = "trainhub.tasks.upload_blobs"
    DELETE_OLD_AUDIT_EVENTS = "workspaces.tasks.delete_old_audit_events"
    DELIVER = "workspaces.tasks.deliver"
    FORGET_DELIVERIES = "workspaces.tasks.forget_deliveries"
    FORGET_SIGN_IN_ATTEMPTS = "workspaces.tasks.forget_sign_in_attempts"
    SEAL_AUDIT_TRAIL = "workspaces.tasks.seal_audit_trail"
    SEND_MAILS = "workspaces.tasks.send_mails"
