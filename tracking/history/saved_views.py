"""Named views of the run table. A view stores the query, not the runs, so it also shows runs that match
later."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from tracking.history.table_query import TableQuery
from tracking.models import SavedView
from workspaces.access import Principal, WorkspaceRequest, needs
from workspaces.states import Role

MAX_NAME_LENGTH = 100
MAX_VIEWS_PER_PERSON = 200


def menu_context(principal: Principal, table_query: TableQuery) -> dict[str, Any]:
    """Returns the context of the menu: the person's own views and those that others share."""
    views = (
        SavedView.objects.filter(workspace=principal.workspace)
        .filter(Q(user=principal.user) | Q(shared=True))
        .select_related("user")
    )
    own, shared = (
        [view for view in views if view.user == principal.user],
        [view for view in views if view.user != principal.user],
    )
    return {
        "own": own,
        "shared": shared,
        "query": table_query.address(page=1).removeprefix("?"),
        "is_owner": principal.may(Role.OWNER),
    }


@require_POST
@needs(Role.VIEWER)
def save_view(request: WorkspaceRequest) -> HttpResponse:
    """Saves a view; it replaces the person's view of the same name. Only contributors can share."""
    principal, name = request.principal, request.POST.get("name", "").strip().replace("\x00", "")
    table_query = TableQuery.read(QueryDict(request.POST.get("query", "")[:20_000]))
    shared = request.POST.get("shared") == "1" and principal.may(Role.CONTRIBUTOR)
    # A view of the same name is replaced, so it does not count towards the limit.
    other_views = SavedView.objects.filter(workspace=principal.workspace, user=principal.user).exclude(
        name=name
    )
    if not name or len(name) > MAX_NAME_LENGTH:
        messages.error(request, f"A view needs a name of 1 to {MAX_NAME_LENGTH} characters.")
    elif other_views.count() >= MAX_VIEWS_PER_PERSON:
        messages.error(request, f"You have {MAX_VIEWS_PER_PERSON} views; delete one that you no longer need.")
    else:
        SavedView.objects.update_or_create(
            workspace=principal.workspace,
            user=principal.user,
            name=name,
            defaults={"query": table_query.address(page=1).removeprefix("?"), "shared": shared},
        )
        messages.success(
            request, f"The view {name} is saved{' for everyone in the workspace' if shared else ''}."
        )
    return redirect(f"{reverse('runs')}{table_query.address(page=1)}")


@require_POST
@needs(Role.VIEWER)
def delete_view(request: WorkspaceRequest, pk: int) -> HttpResponse:
    """Deletes a view: people their own, owners of the workspace also shared ones."""
    principal = request.principal
    deletable = (
        Q(user=principal.user) | Q(shared=True) if principal.may(Role.OWNER) else Q(user=principal.user)
    )
    view = SavedView.objects.filter(deletable, workspace=principal.workspace, pk=pk).first()
    if view is None:
        raise Http404
    view.delete()
    messages.success(request, f"The view {view.name} is deleted; its runs are unchanged.")
    return redirect("runs")
