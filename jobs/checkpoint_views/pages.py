"""The tab of a run's page with its checkpoints, and the buttons that start another run from one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from jobs.checkpoints.states import CheckpointState
from jobs.errors import Conflict
from jobs.models import Attempt, Checkpoint, Run
from jobs.scheduling import run_actions
from jobs.views.run_lookup import run_numbered
from jobs.views.tabs import Tab
from jobs.wizard import drafts
from trainhub_launch.errors import SpecError
from trainhub_launch.spec_reader import read_spec
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

WORDS = {
    CheckpointState.COLLECTING: "being saved",
    CheckpointState.COMPLETE: "complete",
    CheckpointState.UNCONFIRMED: "unconfirmed",
    CheckpointState.TORN: "not kept",
    CheckpointState.REMOVED: "removed",
}
SIGNS = {
    "renamed": "It got its name when it was whole.",
    "metadata": "torch.distributed.checkpoint wrote its file .metadata last.",
    "latest": "DeepSpeed's file latest names it.",
    "marker": "It has a file .complete.",
    "": "Nothing says that the script had written all of it. It is used only if you choose it.",
}


def tab_context(run: Run, attempt: int, _: HttpRequest) -> dict[str, object]:
    """Returns the template context of the tab."""
    attempts = Attempt.objects.filter(run=run, number=attempt)
    began_with = attempts.values_list("restores__number", flat=True).first()
    rows = [
        (row, WORDS[CheckpointState(row.state)], row.detail or SIGNS.get(row.sign, ""))
        for row in Checkpoint.objects.shown(run).order_by("-number")
    ]
    return {
        "checkpoints": rows,
        # Usually of all; those that were copied from another run lie in its folder.
        "place": next((row.place for row, _, _ in rows if row.place), ""),
        "usable": (CheckpointState.COMPLETE, CheckpointState.UNCONFIRMED),
        "keep": read_spec(run.spec).checkpoint.keep,
        "began_with": began_with,
    }


def has_any(run: Run) -> bool:
    return Checkpoint.objects.shown(run).exists()


TAB = Tab("Checkpoints", tab_context, shows=has_any)


@require_POST
@needs(Role.CONTRIBUTOR)
def resume(request: WorkspaceRequest, number: int, checkpoint: int) -> HttpResponse:
    """Submits the spec of the run again, as a new run that begins with that checkpoint."""
    run = run_numbered(request.principal, number)
    try:
        spec = run_actions.resumed_spec(run, checkpoint)
        resumed = run_actions.submit(spec, request.principal, cloned_from=run)
    except (Conflict, SpecError) as error:
        messages.error(request, f"Run {number} is not resumed: {error}")
        return redirect("run-tab", number, "checkpoints")
    return redirect("run", resumed.number)


@require_POST
@needs(Role.CONTRIBUTOR)
def clone(request: WorkspaceRequest, number: int, checkpoint: int) -> HttpResponse:
    """Opens the review step of the wizard for a new run that begins with that checkpoint."""
    run = run_numbered(request.principal, number)
    try:
        spec = run_actions.resumed_spec(run, checkpoint)
    except Conflict as error:
        messages.error(request, str(error))
        return redirect("run", number)
    return redirect("wizard-step", drafts.start(request.principal, spec, cloned_from=run).pk, "review")
