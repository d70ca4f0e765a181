"""A star is a person's own; a pin is the workspace's, and every comparison shows what is pinned."""

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
    """Another time it is taken away."""
    run = run_numbered(request.principal, number)
    is_starred = star(run, request.principal.user) or not unstar(run, request.principal.user)
    if not wants_part(request):
        return redirect("run", number)
    return render(request, "tracking/history/_star.html", {"run": run, "is_starred": is_starred})


def star(run: Run, who: User) -> bool:
    """False where it has one."""
    return Star.objects.get_or_create(user=who, run=run)[1]


def unstar(run: Run, who: User) -> bool:
    return bool(Star.objects.filter(user=who, run=run).delete()[0])


def pin(run: Run, who: User) -> bool:
    """False where it is pinned."""
    return _pinned(run, who, to=True)


def unpin(run: Run, who: User) -> bool:
    return _pinned(run, who, to=False)


def _pinned(run: Run, who: User, *, to: bool) -> bool:
    if not Run.objects.filter(pk=run.pk, pinned=not to).update(pinned=to):
        return False
    audit.record(who, "run.pin" if to else "run.unpin", str(run), run.workspace)
    lifecycle.announce(run, RunState(run.state), Reason(run.reason))
    return True
