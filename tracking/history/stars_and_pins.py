"""Stars belong to a person, pins to the workspace. Every comparison shows the pinned runs."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from jobs import lifecycle
from jobs.models import Run
from jobs.states import Reason, RunState
from jobs.views.partials import wants_part
from jobs.views.run_lookup import run_numbered
from tracking.models import Star
from workspaces import audit
from workspaces.access import WorkspaceRequest, needs
from workspaces.models import User
from workspaces.states import Role


@require_POST
@needs(Role.VIEWER)
def star_run(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Toggles the person's star."""
    run = run_numbered(request.principal, number)
    # `star` returns False if the run has the person's star already; then the click removes it.
    is_starred = star(run, request.principal.user) or not unstar(run, request.principal.user)
    if not wants_part(request):
        return redirect("run", number)
    return render(request, "tracking/history/_star.html", {"run": run, "is_starred": is_starred})


def star(run: Run, user: User) -> bool:
    """Stars the run; returns False if it is starred already."""
    return Star.objects.get_or_create(user=user, run=run)[1]


def unstar(run: Run, user: User) -> bool:
    return bool(Star.objects.filter(user=user, run=run).delete()[0])


def pin(run: Run, user: User) -> bool:
    """Pins the run; returns False if it is pinned already."""
    return _set_pinned(run, user, to=True)


def unpin(run: Run, user: User) -> bool:
    return _set_pinned(run, user, to=False)


def _set_pinned(run: Run, user: User, *, to: bool) -> bool:
    # Only one of two concurrent requests changes the row and is recorded.
    if not Run.objects.filter(pk=run.pk, pinned=not to).update(pinned=to):
        return False
    audit.record(user, "run.pin" if to else "run.unpin", str(run), run.workspace)
    lifecycle.publish_change(run, RunState(run.state), Reason(run.reason))
    return True
