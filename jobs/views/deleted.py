"""The page of deleted runs and experiments, with the views that restore them or purge them for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from jobs.errors import Conflict
from jobs.models import Experiment, Run
from jobs.querysets import RunQuerySet
from jobs.retention import deletion, reclaimable_bytes, run_purge
from jobs.retention.deletion import PURGE_STARTED
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

ON_A_PAGE = 50
# Runs of a deleted experiment whose files are counted for the page.
MAX_MEASURED = 500


@dataclass(frozen=True)
class DeletedRow:
    """A deleted run or experiment on the page.

    `due_at`: when it is purged, or None if the purge has begun. `freed_bytes`: what the purge frees, or None
    if it has too many runs to measure. `runs`: number of runs of an experiment."""

    subject: Run | Experiment
    due_at: datetime | None
    freed_bytes: int | None
    runs: int = 0


@needs(Role.VIEWER)
def deleted(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    page = Paginator(roots(workspace), ON_A_PAGE).get_page(request.GET.get("page"))
    runs = list(page.object_list)
    measured = reclaimable_bytes.bytes_by_group(reclaimable_bytes.with_children(runs))
    context = {
        "page": page,
        "rows": [DeletedRow(run, _due_at(run.deleted_at), measured[run.number]) for run in runs],
        # Experiments are not paginated: they are listed above the runs of the first page.
        "experiments": _experiments(workspace) if page.number == 1 else [],
        "may_act": request.principal.may(Role.CONTRIBUTOR),
        "may_purge": request.principal.may(Role.OWNER),
    }
    return render(request, "jobs/deleted.html", context)


@require_POST
@needs(Role.CONTRIBUTOR)
def restore(request: WorkspaceRequest, number: int) -> HttpResponse:
    run = _deleted_run(request.principal, number)
    try:
        deletion.restore(run, request.principal.user)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("deleted-runs")
    return redirect("run", number)


@require_POST
@needs(Role.OWNER)
def purge(request: WorkspaceRequest, number: int) -> HttpResponse:
    try:
        run_purge.purge_now(_deleted_run(request.principal, number), request.principal.user)
        messages.success(request, f"Run {number} is being deleted permanently.")
    except Conflict as error:
        messages.error(request, str(error))
    return redirect("deleted-runs")


@require_POST
@needs(Role.CONTRIBUTOR)
def delete_experiment(request: WorkspaceRequest, pk: int) -> HttpResponse:
    experiment = _experiment(request.principal, pk)
    try:
        if deletion.delete_experiment(experiment, request.principal.user):
            messages.success(
                request,
                f"The experiment {experiment.name} is deleted, with its runs. It can be restored here.",
            )
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("experiments")
    return redirect("deleted-runs")


@require_POST
@needs(Role.CONTRIBUTOR)
def restore_experiment(request: WorkspaceRequest, pk: int) -> HttpResponse:
    try:
        deletion.restore_experiment(_experiment(request.principal, pk), request.principal.user)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("deleted-runs")
    return redirect("experiments")


@require_POST
@needs(Role.OWNER)
def purge_experiment(request: WorkspaceRequest, pk: int) -> HttpResponse:
    experiment = _experiment(request.principal, pk)
    try:
        run_purge.purge_experiment_now(experiment, request.principal.user)
        messages.success(request, f"The experiment {experiment.name} is being deleted permanently.")
    except Conflict as error:
        messages.error(request, str(error))
    return redirect("deleted-runs")


def roots(workspace: Workspace) -> RunQuerySet:
    """Returns the deleted runs of the workspace that are listed individually, newest first.

    Runs that were deleted together with their experiment or with their parent run are left out."""
    runs = Run.objects.with_deleted_for_workspace(workspace).deleted().filter(experiment__deleted_at=None)
    # One deletion gives the same time to a run and its nested runs; a nested run that was deleted on its own
    # before has another time and stays in the list.
    with_parent = runs.filter(parent__deleted_at=F("deleted_at")).values("pk")
    own = runs.exclude(pk__in=with_parent).order_by("-deleted_at", "-number")
    return own.select_related("experiment").defer("preview", "spec")


def _experiments(workspace: Workspace) -> list[DeletedRow]:
    experiments = (
        Experiment.objects.filter(workspace=workspace).exclude(deleted_at=None).annotate(count=Count("runs"))
    )
    # Measuring walks through the folder of every run on the disk.
    small = [item for item in experiments if item.count <= MAX_MEASURED]
    measured = reclaimable_bytes.bytes_by_group(
        {item.pk: set(item.runs.values_list("pk", flat=True)) for item in small}
    )
    return [
        DeletedRow(item, _due_at(item.deleted_at), measured.get(item.pk), item.count)
        for item in experiments.order_by("-deleted_at")
    ]


def _due_at(deleted_at: datetime | None) -> datetime | None:
    return None if deleted_at is None or deleted_at == PURGE_STARTED else run_purge.due_at(deleted_at)


def _deleted_run(who: Principal, number: int) -> Run:
    runs = Run.objects.with_deleted_for_workspace(who.workspace)
    run: Run | None = runs.filter(number=number).first()
    if run is None:
        raise Http404
    return run


def _experiment(who: Principal, pk: int) -> Experiment:
    experiment = Experiment.objects.filter(workspace=who.workspace, pk=pk).first()
    if experiment is None:
        raise Http404
    return experiment
