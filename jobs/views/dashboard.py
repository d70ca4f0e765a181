"""The start page: active runs, free resources and the runs that ended last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from django.utils import timezone

from jobs import causes
from jobs.logs import log_store
from jobs.models import Member, Run
from jobs.states import ACTIVE, WAITING, RunState
from jobs.views.lanes import TAIL_BYTES, last_line_of_log
from jobs.views.machines import machine_board
from jobs.views.partials import render_part
from jobs.views.run import phases_of
from jobs.views.sparklines import Sparkline, sparklines
from jobs.views.timeline import StateSpan
from jobs.views.trends import trends
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

# The page reads the end of a log and the GPU measurements for each of these runs.
MAX_ACTIVE = 20
MAX_RECENT = 8


@dataclass(frozen=True)
class ActiveRun:
    run: Run
    phases: tuple[StateSpan, ...]
    last_line: str
    sparkline: Sparkline | None


@needs(Role.VIEWER)
def dashboard(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    runs = (
        Run.objects.for_workspace(workspace)
        .leading()
        .select_related("experiment", "created_by")
        .defer("preview")
    )
    board = machine_board(workspace)
    counts = _counts(workspace)
    context = {
        "counts": counts,
        "trends": trends(workspace, {**counts, "gpus": board.gpus[0], "slots": board.slots[0]}),
        "board": board,
        "active": _active(
            list(
                runs.filter(state__in=ACTIVE).prefetch_related("events").order_by("-created_at")[:MAX_ACTIVE]
            )
        ),
        # A run that is not active has ended at some time, by which the index run_ended has them in order.
        "recent": causes.annotate_lines(
            runs.listed().exclude(state__in=ACTIVE).filter(finished_at__isnull=False)
        ).order_by("-finished_at")[:MAX_RECENT],
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "jobs/dashboard.html", "jobs/_dashboard.html", context)


def _counts(workspace: Workspace) -> dict[str, int]:
    # Failures of the present day in the server's time zone; the other two counts are of the present moment.
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    failed_today = Q(state=RunState.FAILED, finished_at__gte=midnight)
    return (
        Run.objects.for_workspace(workspace)
        .leading()
        # Without the condition the database would read all runs that have ever ended.
        .filter(Q(state__in=ACTIVE) | failed_today)
        .aggregate(
            running=Count("pk", filter=Q(state__in=ACTIVE - WAITING)),
            waiting=Count("pk", filter=Q(state__in=WAITING)),
            failed=Count("pk", filter=failed_today),
        )
    )


def _active(runs: list[Run]) -> list[ActiveRun]:
    logs = _logs(runs)
    now = timezone.now()
    lines = sparklines([run.pk for run in runs], now.timestamp())
    return [
        ActiveRun(
            run,
            phases_of(run, run.events.all(), now),
            _last_line(run, logs.get(run.pk, "")),
            lines.get(run.pk),
        )
        for run in runs
    ]


def _logs(runs: list[Run]) -> dict[str, str]:
    """Returns run id -> name of rank 0's log in the run's latest attempt."""
    attempts = {run.pk: run.attempt for run in runs}
    logs: dict[str, Any] = {}
    for run_id, attempt, name in Member.objects.filter(rank=0, attempt__run__in=attempts).values_list(
        "attempt__run_id", "attempt__number", "log_name"
    ):
        if attempts[run_id] == attempt:
            logs[run_id] = name
    return logs


def _last_line(run: Run, log: str) -> str:
    if run.state == RunState.QUEUED:
        return run.sentence
    # While the environment is being built, rank 0 has not started and its log is empty.
    for name in (log, ENVIRONMENT_LOG):
        size = log_store.size(run.pk, run.attempt, name) if name else 0
        if size:
            return last_line_of_log(
                log_store.read(run.pk, run.attempt, name, max(0, size - TAIL_BYTES), TAIL_BYTES)
            )
    return ""
