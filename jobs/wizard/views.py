"""The pages of the wizard, for everybody who may submit runs."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from jobs.models import Draft, Run
from jobs.scheduling import run_actions
from jobs.wizard import drafts, steps
from jobs.wizard.context import step_context
from jobs.wizard.evaluation import evaluate
from jobs.wizard.forms import Raw
from trainhub_launch.errors import SpecError
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

# Fields of a post that are not part of a step's form.
NOT_TYPED = frozenset({"csrfmiddlewaretoken", "go", "chosen_rank"})


@require_http_methods(["GET", "HEAD", "POST"])
@needs(Role.CONTRIBUTOR)
def step(request: WorkspaceRequest, draft_id: uuid.UUID, step: str) -> HttpResponse:
    draft = _find(request, draft_id, step)
    if draft.submitted_run is not None:
        return _to_run(request, draft.submitted_run)
    if request.method != "POST":
        return _page(request, draft, step)
    _keep(request, draft, step)
    # The name of any step means that the user leaves this one, which is allowed with errors. Otherwise the
    # button is Next, which stays at a step with errors.
    target = request.POST.get("go", "next")
    if target in steps.NAMES:
        return redirect("wizard-step", draft.pk, target)
    if any(problem.level == "error" for problem in evaluate(draft, request.principal).of(step)):
        return _page(request, draft, step, tell_all=True, status=422)
    return redirect("wizard-step", draft.pk, steps.after(step))


@require_POST
@needs(Role.CONTRIBUTOR)
def preview(request: WorkspaceRequest, draft_id: uuid.UUID, step: str) -> HttpResponse:
    """Saves what is typed so far and returns the picture, the problems and the list of steps, which htmx
    swaps in place."""
    draft = _find(request, draft_id, step)
    _keep(request, draft, step)
    evaluation = evaluate(draft, request.principal)
    context = step_context(draft, step, evaluation, request.principal, tell_all=False, rank=_rank(request))
    return render(request, "jobs/wizard/_live.html", context | {"is_live": True})


@require_POST
@needs(Role.CONTRIBUTOR)
def submit(request: WorkspaceRequest, draft_id: uuid.UUID) -> HttpResponse:
    """Submits the draft and redirects to its run; for a draft that is submitted already, to the existing
    run."""
    draft = drafts.find(request.principal, draft_id)
    if draft.submitted_run is not None:
        return redirect("run", draft.submitted_run.number)
    evaluation = evaluate(draft, request.principal)
    if evaluation.spec is None or evaluation.errors:
        return _page(request, draft, steps.REVIEW, tell_all=True, status=422)
    try:
        # With this key a second submission returns the first run, also if the process ended before it stored
        # the run in the draft.
        run = run_actions.submit(
            evaluation.spec,
            request.principal,
            idempotency_key=f"draft-{draft.pk.hex}",
            cloned_from=draft.cloned_from,
        )
    except SpecError as error:
        # Something changed between the evaluation above and now; the page below tells it beside its field if
        # it lasts.
        messages.error(request, f"The run was not submitted: {error.message}. Your draft is kept.")
        return _page(request, draft, steps.REVIEW, tell_all=True, status=422)
    drafts.submitted(draft, run)
    return redirect("run", run.number)


@require_GET
@needs(Role.CONTRIBUTOR)
def spec(request: WorkspaceRequest, draft_id: uuid.UUID) -> HttpResponse:
    """Returns the draft's spec as a JSON file for the API and the command line."""
    draft = drafts.find(request.principal, draft_id)
    evaluation = evaluate(draft, request.principal)
    if evaluation.spec is None:
        raise Http404("The draft is not complete yet; its review step shows what is missing.")
    response = JsonResponse(evaluation.spec.to_json(), json_dumps_params={"indent": 2, "ensure_ascii": False})
    response["Content-Disposition"] = 'attachment; filename="run.json"'
    return response


@require_GET
@needs(Role.CONTRIBUTOR)
def job_script(request: WorkspaceRequest, draft_id: uuid.UUID) -> HttpResponse:
    """Returns what would be submitted to the scheduler of the draft's cluster."""
    evaluation = evaluate(drafts.find(request.principal, draft_id), request.principal)
    if not evaluation.job_script:
        # It is not complete yet, which that page explains, or its cluster has no scheduler of its own.
        return redirect("wizard-step", draft_id, steps.REVIEW)
    response = HttpResponse(evaluation.job_script, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="run.sbatch"'
    return response


@require_POST
@needs(Role.CONTRIBUTOR)
def discard(request: WorkspaceRequest, draft_id: uuid.UUID) -> HttpResponse:
    drafts.find(request.principal, draft_id).delete()
    messages.success(request, "The draft no longer exists.")
    return redirect("wizard-start")


def _page(
    request: WorkspaceRequest, draft: Draft, step: str, *, tell_all: bool = False, status: int = 200
) -> HttpResponse:
    evaluation = evaluate(draft, request.principal)
    context = step_context(
        draft,
        step,
        evaluation,
        request.principal,
        tell_all=tell_all or step == steps.REVIEW,
        rank=_rank(request),
    )
    template = "jobs/wizard/review.html" if step == steps.REVIEW else "jobs/wizard/step.html"
    return render(request, template, context, status=status)


def _find(request: WorkspaceRequest, draft_id: uuid.UUID, step: str) -> Draft:
    if step not in steps.NAMES:
        raise Http404(f"The wizard has no step {step!r}; there are {', '.join(steps.NAMES)}.")
    return drafts.find(request.principal, draft_id)


def _to_run(request: WorkspaceRequest, run: Run) -> HttpResponse:
    messages.info(
        request,
        "This draft was submitted and became this run. Clone the run to change something and start another.",
    )
    return redirect("run", run.number)


def _keep(request: WorkspaceRequest, draft: Draft, step: str) -> None:
    # The review has no form; it posts only to redraw the picture.
    if step in steps.BY_NAME:
        typed: Raw = {
            name: [str(value) for value in values]
            for name, values in request.POST.lists()
            if name not in NOT_TYPED
        }
        drafts.save_step(draft, step, typed)


def _rank(request: WorkspaceRequest) -> int:
    text = request.POST.get("chosen_rank", "0")
    return drafts.to_number(text)
