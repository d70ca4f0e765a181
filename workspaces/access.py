"""Who is asking, in which workspace, with which role; the guard of every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from live.publish import publish_on_commit
from live.topics import access_topic
from workspaces.models import Invitation, Membership, User, Workspace
from workspaces.states import Role, TokenScope

P = ParamSpec("P")
SESSION_WORKSPACE = "workspace"
"""Name in a session of the workspace (its primary key) in which the person acts."""


@dataclass(frozen=True)
class Principal:
    """A person acting in one workspace. `scope` is that of the API token in use; a session may do all that
    the role allows."""

    user: User
    workspace: Workspace
    role: Role
    scope: TokenScope = TokenScope.WRITE

    def may(self, needed: Role) -> bool:
        return self.role.covers(needed)


class WorkspaceRequest(HttpRequest):
    """What a view behind `needs` receives."""

    user: User
    principal: Principal


Guarded = Callable[Concatenate[WorkspaceRequest, P], HttpResponseBase]
Open = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def membership_principal(
    user: User, workspace: Workspace | None = None, scope: TokenScope = TokenScope.WRITE
) -> Principal | None:
    """`user` in `workspace`, or in the workspace that they joined first; None for a stranger."""
    memberships = Membership.objects.select_related("workspace").filter(user=user)
    if workspace is not None:
        memberships = memberships.filter(workspace=workspace)
    # Memberships are numbered as people join, so nobody can make a workspace come first by adding somebody to
    # it.
    found = memberships.order_by("pk").first()
    return None if found is None else Principal(user, found.workspace, Role(found.role), scope)


def session_principal(user: User, session: Mapping[str, Any]) -> Principal | None:
    """`user` in the workspace that their session names, or in the one they joined first where it names none.

    None for a stranger, and for somebody who has left the workspace that the session names: nothing may
    silently act in another one."""
    chosen = session.get(SESSION_WORKSPACE)
    if chosen is None:
        return membership_principal(user)
    membership = Membership.objects.select_related("workspace").filter(user=user, workspace_id=chosen).first()
    return None if membership is None else Principal(user, membership.workspace, Role(membership.role))


def access_changed(user: User) -> None:
    """Once this transaction has committed, have every open socket of `user` asked again whether it may
    stay."""
    publish_on_commit(access_topic(user.pk), {"type": "access.changed"})


def principal(request: HttpRequest) -> Principal:
    """Who asks for this page. A person without membership learns nothing: 404.

    A session keeps its workspace from the first page on. When that membership has ended, the next page that
    is opened moves to the workspace joined first; a form that was drawn before is refused."""
    if isinstance(request.user, AnonymousUser):
        raise Http404
    session = getattr(request, "session", {})
    found = session_principal(request.user, session)
    if found is None:
        found = _other_workspace(request)
    if session.get(SESSION_WORKSPACE) != found.workspace.pk:
        session[SESSION_WORKSPACE] = found.workspace.pk
    return found


def _other_workspace(request: HttpRequest) -> Principal:
    found = membership_principal(cast("User", request.user))
    if found is None:
        raise Http404
    if request.method not in ("GET", "HEAD"):
        raise PermissionDenied(
            "You are no longer a member of the workspace in which this page was opened. Open it again in "
            f"{found.workspace}."
        )
    return found


def choose_workspace(request: HttpRequest, workspace: Workspace) -> None:
    """From now on the session acts in `workspace`, of which its person is a member."""
    request.session[SESSION_WORKSPACE] = workspace.pk
    if isinstance(request.user, User):
        # What is open in other tabs shows the other workspace.
        access_changed(request.user)


def is_invited(user: object) -> bool:
    """Whether `user` may look at the page of invitations though they are a member of nothing yet."""
    return isinstance(user, User) and Invitation.objects.filter(user=user).exists()


def lacking(who: Principal, needed: Role) -> str:
    """The sentence for somebody whose role does not suffice."""
    return f"This needs the role {needed}; you are {who.role} of {who.workspace}. Ask one of its owners."


def needs(role: Role) -> Callable[[Guarded[P]], Open[P]]:
    """Guard a view: 404 without membership, 403 below `role`; sets `request.principal`."""

    def guard(view: Guarded[P]) -> Open[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            try:
                who = principal(request)
            except Http404:
                if is_invited(request.user):
                    return redirect("invitations")
                raise
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
