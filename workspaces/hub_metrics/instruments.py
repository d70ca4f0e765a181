"""The measurements of this process. Their names and labels are those at /metrics (docs/system.md)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY = CollectorRegistry()
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

REQUEST_SECONDS = Histogram(
    "trainhub_http_request_seconds",
    "Time from a request's arrival to the end of its answer.",
    ("method", "route", "status"),
    buckets=_SECONDS,
    registry=REGISTRY,
)
OPEN_SOCKETS = Gauge(
    "trainhub_open_sockets", "WebSocket connections of pages and scripts.", registry=REGISTRY
)
LOOP_LAG_SECONDS = Histogram(
    "trainhub_event_loop_lag_seconds",
    "How much later than planned the web server's event loop goes on after a pause.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
ROUND_SECONDS = Histogram(
    "trainhub_round_seconds",
    "Duration of periodic work of a process.",
    ("round",),
    buckets=_SECONDS,
    registry=REGISTRY,
)
ROUND_LATE_SECONDS = Gauge(
    "trainhub_round_late_seconds",
    "How much later than planned periodic work began last, because the work before it took long.",
    ("round",),
    registry=REGISTRY,
)
ROUND_FAILURES = Counter(
    "trainhub_round_failures", "Periodic work that ended with an error.", ("round",), registry=REGISTRY
)
TASK_WAIT_SECONDS = Histogram(
    "trainhub_task_wait_seconds",
    "Time from the message for a task to its start in a worker.",
    ("task",),
    buckets=_SECONDS,
    registry=REGISTRY,
)
TASK_SECONDS = Histogram(
    "trainhub_task_seconds", "Duration of tasks.", ("task",), buckets=_SECONDS, registry=REGISTRY
)
TASK_FAILURES = Counter(
    "trainhub_task_failures", "Tasks that ended with an error.", ("task",), registry=REGISTRY
)
QUEUED_MESSAGES = Gauge(
    "trainhub_queued_messages",
    "Messages at the broker that no worker has taken yet.",
    ("queue",),
    registry=REGISTRY,
)
CPU_SECONDS = Counter("trainhub_process_cpu_seconds", "CPU time of a process of the hub.", registry=REGISTRY)
MEMORY_BYTES = Gauge(
    "trainhub_process_memory_bytes", "Resident memory of a process of the hub.", registry=REGISTRY
)
OPEN_FILES = Gauge(
    "trainhub_process_open_files", "Open files and connections of a process.", registry=REGISTRY
)
STORE_SECONDS = Histogram(
    "trainhub_store_request_seconds",
    "Duration of requests to the object store with all their repetitions; of reading, until the first bytes.",
    ("operation",),
    buckets=_SECONDS,
    registry=REGISTRY,
)
STORE_FAILURES = Counter(
    "trainhub_store_failures",
    "Requests to the object store that failed for good.",
    ("operation",),
    registry=REGISTRY,
)
STORE_BYTES = Counter(
    "trainhub_store_bytes",
    "Bytes of files to and from the object store.",
    ("direction",),
    registry=REGISTRY,
)
UPLOAD_RETRIES = Counter(
    "trainhub_store_upload_retries",
    "Uploads to the object store that failed and were put off.",
    registry=REGISTRY,
)
BLOB_READS = Counter(
    "trainhub_blob_reads",
    "Reads of stored files, by where their bytes were: on the disk, or in the object store.",
    ("place",),
    registry=REGISTRY,
)
BLOB_CACHE_BYTES = Gauge(
    "trainhub_blob_cache_bytes",
    "Bytes of the stored files on the disk of this process, as it counted them last.",
    registry=REGISTRY,
)
PROXY_FAULTS = Counter(
    "trainhub_proxy_faults",
    "Requests through a trusted proxy that lacked a header which it must pass on or set.",
    ("header",),
    registry=REGISTRY,
)
