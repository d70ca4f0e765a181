"""Views of the run table under a name. A view keeps the question, not the runs: what matches later is in it
too."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from tracking.history.table_query import Question
from tracking.models import SavedView
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.states import Role

LONGEST_NAME = 100
MOST_OF_A_PERSON = 200


def listed(who: Principal, question: Question) -> dict[str, Any]:
    """Who asks has their own, and those that others share."""
    found = (
        SavedView.objects.filter(workspace=who.workspace)
        .filter(Q(user=who.user) | Q(shared=True))
        .select_related("user")
    )
    own, shared = (
        [view for view in found if view.user == who.user],
        [view for view in found if view.user != who.user],
    )
    return {
        "own": own,
        "shared": shared,
        "query": question.address(page=1).removeprefix("?"),
        "is_owner": who.may(Role.OWNER),
    }


@require_POST
@needs(Role.VIEWER)
def save(request: WorkspaceRequest) -> HttpResponse:
    """Under a name that the person has already it takes the place of the old one. Only contributors share."""
    who, name = request.principal, request.POST.get("name", "").strip().replace("\x00", "")
    question = Question.read(QueryDict(request.POST.get("query", "")[:20_000]))
    shared = request.POST.get("shared") == "1" and who.may(Role.CONTRIBUTOR)
    others = SavedView.objects.filter(workspace=who.workspace, user=who.user).exclude(name=name)
    if not name or len(name) > LONGEST_NAME:
        messages.error(request, f"A view needs a name of 1 to {LONGEST_NAME} characters.")
    elif others.count() >= MOST_OF_A_PERSON:
        messages.error(request, f"You have {MOST_OF_A_PERSON} views; delete one that you no longer need.")
    else:
        SavedView.objects.update_or_create(
            workspace=who.workspace,
            user=who.user,
            name=name,
            defaults={"query": question.address(page=1).removeprefix("?"), "shared": shared},
        )
        messages.success(
            request, f"The view {name} is saved{' for everybody in the workspace' if shared else ''}."
        )
    return redirect(f"{reverse('runs')}{question.address(page=1)}")


@require_POST
@needs(Role.VIEWER)
def delete(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """One's own; an owner of the workspace also those that others share."""
    who = request.principal
    mine = Q(user=who.user) | Q(shared=True) if who.may(Role.OWNER) else Q(user=who.user)
    view = SavedView.objects.filter(mine, workspace=who.workspace, pk=pk).first()
    if view is None:
        raise Http404
    view.delete()
    messages.success(request, f"The view {view.name} is deleted; its runs are as they were.")
    return redirect("runs")
