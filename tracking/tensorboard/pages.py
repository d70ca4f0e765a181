"""The page of a run that shows TensorBoard in a frame."""

from __future__ import annotations

from django.contrib.auth.signals import user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from jobs.models import Run
from jobs.views.run_lookup import run_numbered
from tracking.tensorboard.event_folder import has_event_files
from tracking.tensorboard.sessions import IDLE_S, NotOpened, boards
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import User
from workspaces.states import Role


def page_url(run: Run) -> str:
    """Returns the address of the page for a run with event files; "" for other runs."""
    return reverse("run-tensorboard", args=[run.number]) if has_event_files(run) else ""


@require_http_methods(["GET", "POST"])
@needs(Role.VIEWER)
def page(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Shows the person's TensorBoard of this run; with POST, starts it first."""
    run = run_numbered(request.principal, number)
    if request.method != "POST":
        return _page(request, run)
    if not has_event_files(run):
        return _page(request, run, "This run has no event files of TensorBoard.", status=409)
    try:
        boards.open(run, request.principal.user.pk)
    except NotOpened as reason:
        return _page(request, run, str(reason), status=503)
    return redirect("run-tensorboard", number)


@receiver(user_logged_out)
def _close_with_session(user: User | None, **_: object) -> None:
    """Ends what a person has open when they sign out: a ticket would work without the session."""
    if user is not None:
        boards.close_of(user.pk)


def _page(request: HttpRequest, run: Run, refusal: str = "", status: int = 200) -> HttpResponse:
    board = boards.of(run, request.user.pk or 0)
    context = {
        "run": run,
        "address": board.address if board else "",
        "refusal": refusal,
        "can_start": has_event_files(run),
        "idle_minutes": int(IDLE_S // 60),
    }
    return render(request, "tracking/tensorboard.html", context, status=status)
