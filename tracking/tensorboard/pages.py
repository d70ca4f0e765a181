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
from tracking.tensorboard.sessions import IDLE_S, NotOpened, Reader, boards
from workspaces.access import WorkspaceRequest, needs
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
        boards.open(run, _reader(request))
    except NotOpened as reason:
        return _page(request, run, str(reason), status=503)
    return redirect("run-tensorboard", number)


@receiver(user_logged_out)
def _close_with_session(request: HttpRequest, **_: object) -> None:
    """Ends what is open in a session when its person signs out: a ticket would work without it."""
    if request.session.session_key:
        boards.close_of(request.session.session_key)


def _reader(request: HttpRequest) -> Reader:
    return Reader(request.user.pk or 0, request.session.session_key or "")


def _page(request: HttpRequest, run: Run, refusal: str = "", status: int = 200) -> HttpResponse:
    board = boards.of(run, _reader(request))
    context = {
        "run": run,
        "address": board.address if board else "",
        "refusal": refusal,
        "can_start": has_event_files(run),
        "idle_minutes": int(IDLE_S // 60),
    }
    return render(request, "tracking/tensorboard.html", context, status=status)
