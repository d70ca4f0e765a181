"""The page that lists the workspace's experiments."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse

from jobs.models import Experiment, Run
from jobs.reading.experiment_counts import ExperimentCounts, counts_of_experiments
from jobs.views.partials import render_part
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import Workspace
from workspaces.states import Role

# The tag in which MLflow's clients store the description of an experiment.
DESCRIPTION = "mlflow.note.content"
MAX_TEXT_LENGTH = 200
# What `?sort=` takes: the name, or a field of ExperimentCounts; a minus in front of it turns the order round.
SORTS = ("name", "runs", "active", "failed", "last")
LATEST_FIRST = "-last"


@dataclass(frozen=True)
class SortedHead:
    """The head of a column: `sort` is what a click on it asks for, `order` its present value of aria-sort."""

    title: str
    sort: str
    order: str
    classes: str


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment on the page; `run`: its latest run, if it has any."""

    experiment: Experiment
    description: str
    counts: ExperimentCounts
    run: Run | None


@needs(Role.VIEWER)
def experiments(request: WorkspaceRequest) -> HttpResponse:
    """Lists the experiments. `q`: only those with this in their name or description; `sort`: see SORTS."""
    workspace = request.principal.workspace
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_TEXT_LENGTH]
    sort = request.GET.get("sort", "")
    if sort.removeprefix("-") not in SORTS:
        sort = LATEST_FIRST
    context = {
        "rows": _rows(workspace, text, sort),
        "text": text,
        "sort": "" if sort == LATEST_FIRST else sort,
        "heads": _heads(sort),
        "may_act": request.principal.may(Role.CONTRIBUTOR),
    }
    return render_part(request, "jobs/experiments.html", "jobs/_experiments.html", context)


def _rows(workspace: Workspace, text: str, sort: str) -> list[ExperimentRow]:
    experiments = [
        item
        for item in Experiment.objects.filter(workspace=workspace, deleted_at=None).order_by("name")
        if text.lower() in f"{item.name} {_description(item)}".lower()
    ]
    counts = counts_of_experiments([item.pk for item in experiments])
    numbers = [item.last for item in counts.values()]
    last = {
        run.number: run
        # Numbers are unique within a workspace, so one query finds the latest run of every experiment.
        for run in Run.objects.for_workspace(workspace).filter(number__in=numbers).defer("preview", "spec")
    }
    rows = [
        ExperimentRow(item, _description(item), counts[item.pk], last.get(counts[item.pk].last))
        for item in experiments
    ]
    if sort.removeprefix("-") == "name":
        return sorted(rows, key=lambda row: row.experiment.name.lower(), reverse=sort.startswith("-"))
    # Python's order is stable, so equal ones stay in the order of their names.
    field = sort.removeprefix("-")
    return sorted(rows, key=lambda row: getattr(row.counts, field), reverse=sort.startswith("-"))


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
