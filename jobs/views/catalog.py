"""Pages that list the workspace's experiments and the environments in which its runs can be started."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, Max, Q
from django.http import HttpResponse
from django.shortcuts import render

from clusters.models import Node
from clusters.visibility import visible_nodes
from jobs.environments import CURATED
from jobs.models import Experiment, Run
from jobs.sources.first_use import first_uses
from jobs.states import ACTIVE, RunState
from trainhub_launch.scheduler.rejections import natural
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

WITHOUT_DELETED_RUNS = Q(runs__deleted_at=None)


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    workspace = request.principal.workspace
    experiments = list(
        Experiment.objects.filter(workspace=workspace, deleted_at=None)
        .annotate(
            run_count=Count("runs", filter=WITHOUT_DELETED_RUNS),
            active_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state__in=ACTIVE)),
            failed_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state=RunState.FAILED)),
            last_number=Max("runs__number", filter=WITHOUT_DELETED_RUNS),
        )
        .order_by("-last_number", "name")
    )
    numbers = [experiment.last_number for experiment in experiments if experiment.last_number]
    last = {
        run.number: run
        # Numbers are unique within a workspace, so one query finds the latest run of every experiment.
        for run in Run.objects.for_workspace(workspace).filter(number__in=numbers).defer("preview", "spec")
    }
    rows = [(experiment, last.get(experiment.last_number)) for experiment in experiments]
    return render(
        request, "jobs/experiments.html", {"rows": rows, "may_act": request.principal.may(Role.CONTRIBUTOR)}
    )


@needs(Role.VIEWER)
def environments(request: WorkspaceRequest) -> HttpResponse:
    """Lists the curated environments, and the interpreters that visible nodes report, each with its nodes."""
    nodes = visible_nodes(request.principal.workspace).filter(revoked_at=None)
    interpreters = _interpreters(nodes)
    costs = first_uses(request.principal.workspace)
    curated = [(environment, costs[environment.name]) for environment in CURATED]
    return render(request, "jobs/environments.html", {"curated": curated, "interpreters": interpreters})


def _interpreters(nodes: Iterable[Node]) -> list[tuple[str, str, list[str]]]:
    """Returns (version, path, names of its nodes) for each interpreter, the newest version first."""
    names: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        for item in node.interpreters:
            names.setdefault((item["version"], item["path"]), []).append(node.name)
    newest_first = sorted(names, key=lambda item: (natural(item[0]), item[1]), reverse=True)
    return [(version, path, names[version, path]) for version, path in newest_first]
