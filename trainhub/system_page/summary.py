"""What the page System and its API show: the hub's processes, requests, periodic work, tasks and queues."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from jobs.log_shipping.targets import LogTargetState, all_targets, state_of
from jobs.models import Run
from jobs.prometheus.launch_delays import StepDelay, launch_delays
from jobs.states import ACTIVE, RunState
from trainhub.serving.proxy_warnings import ProxyWarning, proxy_warnings
from trainhub.system_page.database_size import database_bytes
from trainhub.system_page.store_figures import StoreFigures, store_figures
from trainhub.system_page.timings import (
    RequestTiming,
    Timing,
    merged_series,
    series_sum,
    timing_columns,
    timings_of,
    value_of,
)
from workspaces.hub_metrics.processes import MeasuredProcess, measured_processes
from workspaces.hub_metrics.snapshots import Series, quantile
from workspaces.mail.models import OutgoingMail
from workspaces.models import AuditEvent, Delivery
from workspaces.servers.differences import ServerWarning, server_warnings
from workspaces.servers.server_list import ServerState, server_states
from workspaces.states import MailState

MAX_ROUTES = 25
# Each process says that it runs some seconds after its start.
STARTING_FOR = timedelta(seconds=40)


@dataclass(frozen=True)
class RoundTiming(Timing):
    """Of one process. `late_s`: how much later than planned it began last; None: not measured."""

    process: str
    failures: int
    late_s: float | None


@dataclass(frozen=True)
class ProcessState:
    """`cpu_share`: of one core. `lag_p99_s`: of the event loop; None for a worker."""

    name: str
    kind: str
    version: str
    started_at: datetime
    measured_at: datetime
    is_silent: bool
    cpu_share: float | None
    memory_bytes: float | None
    open_files: float | None
    lag_p99_s: float | None

    @property
    def cpu_percent(self) -> str:
        return f"{100 * (self.cpu_share or 0):.1f}"


@dataclass(frozen=True)
class Backlog:
    """What waits for the hub. `oldest_at`: None if nothing waits, or if it is not known."""

    name: str
    waiting: int
    oldest_at: datetime | None = None


@dataclass(frozen=True)
class System:
    """`asked_at`: when this was so."""

    asked_at: datetime
    window_s: float
    processes: list[ProcessState]
    servers: list[ServerState]
    server_warnings: list[ServerWarning]
    proxy_warnings: list[ProxyWarning]
    requests: list[RequestTiming]
    store: StoreFigures | None
    rounds: list[RoundTiming]
    tasks: list[Timing]
    task_waits: list[Timing]
    backlogs: list[Backlog]
    log_targets: list[LogTargetState]
    delays: list[StepDelay]
    database: str
    database_bytes: int | None
    disk_free_bytes: int
    disk_total_bytes: int

    @property
    def has_worker(self) -> bool:
        return any(process.kind == "worker" and not process.is_silent for process in self.processes)

    @property
    def is_starting(self) -> bool:
        """Whether every process began so recently that others may not have said yet that they run."""
        began_after = self.asked_at - STARTING_FOR
        return all(process.is_silent or process.started_at > began_after for process in self.processes)


def system_summary(now: datetime) -> System:
    """Returns how the hub is doing at `now`."""
    everyone = measured_processes(now)
    living = [process for process in everyone if not process.is_silent]
    disk = shutil.disk_usage(settings.DATA_DIR)
    database = settings.DATABASES["default"]["ENGINE"].rpartition(".")[2]
    return System(
        asked_at=now,
        window_s=max((process.seconds for process in living), default=0.0),
        processes=[_state(process) for process in everyone],
        servers=server_states(),
        server_warnings=server_warnings(),
        proxy_warnings=proxy_warnings(now),
        requests=list(_requests(living)),
        store=store_figures(living),
        rounds=list(_rounds(living)),
        tasks=timings_of("trainhub_task_seconds", living),
        task_waits=timings_of("trainhub_task_wait_seconds", living),
        backlogs=[*_messages(living), *_backlogs()],
        log_targets=[state_of(target) for target in all_targets()],
        delays=launch_delays(now),
        database={"postgresql": "PostgreSQL", "sqlite3": "SQLite"}.get(database, database),
        database_bytes=database_bytes(),
        disk_free_bytes=disk.free,
        disk_total_bytes=disk.total,
    )


def _state(process: MeasuredProcess) -> ProcessState:
    row, lag = process.row, process.recent.get("trainhub_event_loop_lag_seconds")
    cpu_s = value_of(process, "trainhub_process_cpu_seconds")
    waited = lag.series.get(()) if lag else None
    return ProcessState(
        row.name,
        row.kind,
        row.version,
        row.started_at,
        row.measured_at,
        process.is_silent,
        cpu_s / process.seconds if cpu_s is not None and process.seconds else None,
        value_of(process, "trainhub_process_memory_bytes"),
        value_of(process, "trainhub_process_open_files"),
        quantile(lag.bounds, waited.buckets, 0.99) if lag and waited else None,
    )


def _requests(living: Sequence[MeasuredProcess]) -> Iterator[RequestTiming]:
    """Yields the routes that took most time of all."""
    metric, merged = merged_series("trainhub_http_request_seconds", living)
    by_route: dict[str, dict[str, Series]] = {}
    for (method, route, status), series in merged.items():
        by_route.setdefault(f"{method} {route}", {})[status] = series
    timings = [
        RequestTiming(
            *timing_columns(name, metric, series_sum(answers.values())), answers.get("5xx", Series()).count
        )
        for name, answers in by_route.items()
    ]
    yield from sorted(timings, key=lambda timing: timing.total_s, reverse=True)[:MAX_ROUTES]


def _rounds(living: Sequence[MeasuredProcess]) -> Iterator[RoundTiming]:
    for process in living:
        metric = process.recent.get("trainhub_round_seconds")
        for labels, series in sorted(metric.series.items()) if metric else ():
            yield RoundTiming(
                *timing_columns(labels[0], metric, series),
                process.row.name,
                int(value_of(process, "trainhub_round_failures", labels) or 0),
                value_of(process, "trainhub_round_late_seconds", labels),
            )


def _messages(living: Sequence[MeasuredProcess]) -> Iterator[Backlog]:
    depths = [
        series.value
        for process in living
        if (metric := process.recent.get("trainhub_queued_messages"))
        for series in metric.series.values()
    ]
    if depths:
        yield Backlog("Messages for the workers", int(max(depths)))


def _backlogs() -> Iterator[Backlog]:
    queued = Run.objects.filter(state=RunState.QUEUED).order_by("created_at")
    yield Backlog("Runs in the queue", queued.count(), queued.values_list("created_at", flat=True).first())
    yield Backlog("Runs that are not over", Run.objects.filter(state__in=ACTIVE).count())
    waiting = Delivery.objects.filter(state="waiting").order_by("created_at")
    yield Backlog("Notifications", waiting.count(), waiting.values_list("created_at", flat=True).first())
    yield Backlog("Mails", OutgoingMail.objects.filter(state=MailState.WAITING).count())
    unsealed = AuditEvent.objects.filter(position=None).order_by("at")
    yield Backlog(
        "Audit events to be sealed", unsealed.count(), unsealed.values_list("at", flat=True).first()
    )
