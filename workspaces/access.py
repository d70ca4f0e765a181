"""Who is asking, in which workspace, with which role; the guard of every page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from live.publish import publish_on_commit
from live.topics import access_topic
from workspaces.models import Membership, User, Workspace
from workspaces.states import Role

P = ParamSpec("P")


@dataclass(frozen=True)
class Principal:
    """A person acting in one workspace."""

    user: User
    workspace: Workspace
    role: Role

    def may(self, needed: Role) -> bool:
        return self.role.covers(needed)


class WorkspaceRequest(HttpRequest):
    """What a view behind `needs` receives."""

    user: User
    principal: Principal


Guarded = Callable[Concatenate[WorkspaceRequest, P], HttpResponseBase]
Open = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def membership_principal(user: User, workspace: Workspace | None = None) -> Principal | None:
    """`user` in `workspace`, or in the first workspace they belong to; None for a stranger."""
    memberships = Membership.objects.select_related("workspace").filter(user=user)
    if workspace is not None:
        memberships = memberships.filter(workspace=workspace)
    found = memberships.order_by("workspace_id").first()
    return None if found is None else Principal(user, found.workspace, Role(found.role))


def access_changed(user: User) -> None:
    """Once this transaction has committed, have every open socket of `user` asked again whether it may stay."""
    publish_on_commit(access_topic(user.pk), {"type": "access.changed"})


def principal(request: HttpRequest) -> Principal:
    """Who asks for this page. A person without membership learns nothing: 404."""
    found = None if isinstance(request.user, AnonymousUser) else membership_principal(request.user)
    if found is None:
        raise Http404
    return found


def lacking(who: Principal, needed: Role) -> str:
    """The sentence for somebody whose role does not suffice."""
    return f"This needs the role {needed}; you are {who.role} of {who.workspace}. Ask one of its owners."


def needs(role: Role) -> Callable[[Guarded[P]], Open[P]]:
    """Guard a view: 404 without membership, 403 below `role`; sets `request.principal`."""

    def guard(view: Guarded[P]) -> Open[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            who = principal(request)
            if not who.may(role):
                raise PermissionDenied(lacking(who, role))
            if who.user.password_is_one_time:
                return redirect_to_password()
            asking = cast("WorkspaceRequest", request)
            asking.principal = who
            return view(asking, *args, **kwargs)

        return guarded

    return guard


def redirect_to_password() -> HttpResponse:
    """A one-time password opens one door only: the page that replaces it."""
    return redirect("password")
