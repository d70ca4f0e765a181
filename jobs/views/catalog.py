"""The page that lists the workspace's experiments."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Q
from django.http import HttpResponse

from jobs.models import Experiment, Run
from jobs.states import ACTIVE, RunState
from jobs.views.partials import render_part
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

WITHOUT_DELETED_RUNS = Q(runs__deleted_at=None)
# The tag in which MLflow's clients store the description of an experiment.
DESCRIPTION = "mlflow.note.content"
MAX_TEXT_LENGTH = 200
# Names that `?sort=` takes, with what is sorted by; a minus in front of one turns the order round.
SORTS = {
    "name": "name",
    "runs": "run_count",
    "active": "active_count",
    "failed": "failed_count",
    "last": "last_number",
}
LATEST_FIRST = "-last"


@dataclass(frozen=True)
class SortedHead:
    """The head of a column: `sort` is what a click on it asks for, `order` its present value of aria-sort."""

    title: str
    sort: str
    order: str
    classes: str


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    """Lists the experiments. `q`: only those with this in their name or description; `sort`: see SORTS."""
    workspace = request.principal.workspace
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_TEXT_LENGTH]
    sort = request.GET.get("sort", "")
    if sort.removeprefix("-") not in SORTS:
        sort = LATEST_FIRST
    found = _experiments(workspace, text, sort)
    context = {
        "rows": _with_last_runs(workspace, found),
        "text": text,
        "sort": "" if sort == LATEST_FIRST else sort,
        "heads": _heads(sort),
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "jobs/experiments.html", "jobs/_experiments.html", context)


def _experiments(workspace: Workspace, text: str, sort: str) -> list[Experiment]:
    experiments = (
        Experiment.objects.filter(workspace=workspace, deleted_at=None)
        .annotate(
            run_count=Count("runs", filter=WITHOUT_DELETED_RUNS),
            active_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state__in=ACTIVE)),
            failed_count=Count("runs", filter=WITHOUT_DELETED_RUNS & Q(runs__state=RunState.FAILED)),
            last_number=Max("runs__number", filter=WITHOUT_DELETED_RUNS),
        )
        .order_by("name")
    )
    rows = [item for item in experiments if text.lower() in f"{item.name} {_description(item)}".lower()]
    if sort.removeprefix("-") == "name":
        return sorted(rows, key=lambda item: item.name.lower(), reverse=sort.startswith("-"))
    # Python's order is stable, so equal ones stay in the order of their names.
    field = SORTS[sort.removeprefix("-")]
    return sorted(rows, key=lambda item: getattr(item, field) or 0, reverse=sort.startswith("-"))


def _with_last_runs(
    workspace: Workspace, experiments: list[Experiment]
) -> list[tuple[Experiment, str, Run | None]]:
    """Returns (experiment, its description, its latest run)."""
    numbers = {item.pk: getattr(item, SORTS["last"]) for item in experiments}
    last = {
        run.number: run
        # Numbers are unique within a workspace, so one query finds the latest run of every experiment.
        for run in Run.objects.for_workspace(workspace)
        .filter(number__in=numbers.values())
        .defer("preview", "spec")
    }
    return [(item, _description(item), last.get(numbers[item.pk])) for item in experiments]


def _description(experiment: Experiment) -> str:
    return str(experiment.tags.get(DESCRIPTION, ""))


def _heads(sort: str) -> list[SortedHead]:
    titles = (
        ("Experiment", "name", ""),
        ("Runs", "runs", "th-num"),
        ("Active", "active", "th-num th-wide-only"),
        ("Failed", "failed", "th-num th-wide-only"),
        ("Last run", "last", ""),
    )
    heads = []
    for title, name, classes in titles:
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        # The first click shows names from A on, and of numbers the greatest.
        first = name if name == "name" else f"-{name}"
        turned = {"ascending": f"-{name}", "descending": name}.get(order, first)
        heads.append(SortedHead(title, turned, order, classes))
    return heads
