"""Determines who sends a request, in which workspace and with which role; guards every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone

from live.publish import publish_on_commit
from live.topics import access_topic
from workspaces.authentication.token_text import digest
from workspaces.database.compiled_queries import compiled
from workspaces.models import (
    Invitation,
    InvitationLink,
    Membership,
    Passkey,
    TotpDevice,
    User,
    Workspace,
)
from workspaces.states import Role, TokenScope

P = ParamSpec("P")
# Name in a session of the workspace (its primary key) in which the person acts.
SESSION_WORKSPACE = "workspace"
INVITATION_LINKS = "/sign-in/invitation/"
NO_WORKSPACE = (
    "You are not a member of any workspace here. Ask an owner to add you, {name}, then sign in again."
)


@dataclass(frozen=True)
class Principal:
    """A person acting in one workspace. `scope` is that of the API token in use; a session may do everything
    that the role permits."""

    user: User
    workspace: Workspace
    role: Role
    scope: TokenScope = TokenScope.WRITE

    def may(self, needed: Role) -> bool:
        return self.role.covers(needed)


class WorkspaceRequest(HttpRequest):
    """The request that a view behind `needs` receives."""

    user: User
    principal: Principal


Guarded = Callable[Concatenate[WorkspaceRequest, P], HttpResponseBase]
Open = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def membership_principal(
    user: User, workspace: Workspace | None = None, scope: TokenScope = TokenScope.WRITE
) -> Principal | None:
    """Returns `user` acting in `workspace`, or in the workspace that they joined first, archived ones last;
    None without such a membership."""
    rows = _memberships(user.pk) if workspace is None else _membership(user.pk, workspace.pk)
    membership = next(iter(rows), None)
    return None if membership is None else Principal(user, membership.workspace, _role(membership), scope)


@compiled
def _memberships(user_id: int) -> QuerySet[Membership]:
    # Memberships are numbered as people join, so nobody can make a workspace come first by adding somebody to
    # it.
    order = (F("workspace__archived_at").asc(nulls_first=True), "pk")
    return Membership.objects.select_related("workspace").filter(user_id=user_id).order_by(*order)[:1]


@compiled
def _membership(user_id: int, workspace_id: int) -> QuerySet[Membership]:
    return Membership.objects.select_related("workspace").filter(user_id=user_id, workspace_id=workspace_id)


def session_principal(user: User, session: Mapping[str, Any]) -> Principal | None:
    """Returns `user` acting in the workspace that their session names, or, if it names none, in the one that
    they joined first.

    None for a person without membership, and for one who has left the workspace that the session names: the
    session must not silently act in another one."""
    chosen = session.get(SESSION_WORKSPACE)
    if chosen is None:
        return membership_principal(user)
    membership = Membership.objects.select_related("workspace").filter(user=user, workspace_id=chosen).first()
    return None if membership is None else Principal(user, membership.workspace, _role(membership))


def _role(membership: Membership) -> Role:
    """Returns the role in which the member acts: in an archived workspace everybody can only read."""
    return Role(membership.role) if membership.workspace.archived_at is None else Role.VIEWER


def access_changed(user: User) -> None:
    """After the present transaction has committed, makes every open socket of `user` check again whether it
    may stay open."""
    publish_on_commit(access_topic(user.pk), {"type": "access.changed"})


def principal(request: HttpRequest) -> Principal:
    """Returns the person who requests this page. Raises Http404 for a person without membership.

    A session keeps its workspace from the first page on. If that membership has ended, the next page that is
    opened changes to the workspace joined first; a form of an earlier page raises PermissionDenied."""
    if isinstance(request.user, AnonymousUser):
        raise Http404
    session = getattr(request, "session", {})
    principal_of_session = session_principal(request.user, session)
    if principal_of_session is None:
        principal_of_session = _other_workspace(request)
    if session.get(SESSION_WORKSPACE) != principal_of_session.workspace.pk:
        session[SESSION_WORKSPACE] = principal_of_session.workspace.pk
    return principal_of_session


def _other_workspace(request: HttpRequest) -> Principal:
    other = membership_principal(cast("User", request.user))
    if other is None:
        raise Http404
    if request.method not in ("GET", "HEAD"):
        raise PermissionDenied(
            "You are no longer a member of the workspace in which this page was opened. Open it again in "
            f"{other.workspace}."
        )
    return other


def choose_workspace(request: HttpRequest, workspace: Workspace) -> None:
    """Makes the session act in `workspace` from now on. Its person must be a member."""
    request.session[SESSION_WORKSPACE] = workspace.pk
    if isinstance(request.user, User):
        # What is open in other tabs shows the other workspace.
        access_changed(request.user)


def is_invited(user: object) -> bool:
    """Returns whether `user` has an invitation, and may therefore open the page of invitations without any
    membership."""
    return isinstance(user, User) and Invitation.objects.filter(user=user).exists()


def may_enter(user: User, next_address: str) -> bool:
    """Returns whether a person who signs in finds anything here: a workspace, an invitation, or at
    `next_address` the page of a link that invites them."""
    return membership_principal(user) is not None or is_invited(user) or _is_invitation_link(next_address)


def _is_invitation_link(address: str) -> bool:
    path = urlsplit(address).path
    if not path.startswith(INVITATION_LINKS):
        return False
    text = path.removeprefix(INVITATION_LINKS).strip("/")
    return InvitationLink.objects.filter(digest=digest(text), expires_at__gt=timezone.now()).exists()


def lacking(who: Principal, needed: Role) -> str:
    """Returns the message for a person whose role does not suffice."""
    if who.workspace.archived_at is not None:
        return archived(who.workspace)
    return f"This needs the role {needed}; you are {who.role} of {who.workspace}. Ask one of its owners."


def archived(workspace: Workspace) -> str:
    """Returns the message for a change in an archived workspace."""
    return f"{workspace} is archived and can only be read. An operator can restore it."


def needs(role: Role) -> Callable[[Guarded[P]], Open[P]]:
    """Returns a decorator that guards a view: 404 without membership, 403 below `role`; sets
    `request.principal`."""

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


def must_operate(user: User) -> None:
    """Raises PermissionDenied unless the user is an operator of the installation, with a second factor if it
    wants one of its operators."""
    if not user.is_operator:
        raise PermissionDenied("This is for the operators of this installation; ask one of them.")
    if not may_operate(user):
        raise PermissionDenied(
            "Operators of this installation need a second factor. Set one up under Settings, Second factor."
        )


def may_operate(user: User) -> bool:
    """Returns whether the user is an operator, with a second factor if the installation wants that."""
    needs_factor = settings.SIGN_IN.operators_need_second_factor
    return user.is_operator and (not needs_factor or has_second_factor(user))


def has_second_factor(user: User) -> bool:
    """Returns whether the person has an app for one-time codes or a passkey."""
    has_app = TotpDevice.objects.filter(user=user).exclude(confirmed_at=None).exists()
    return has_app or Passkey.objects.filter(user=user).exists()


def operators_only(view: Guarded[P]) -> Open[P]:
    """Decorates a view that only operators may open, whatever their role in the workspace."""

    @wraps(view)
    def guarded(request: WorkspaceRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        must_operate(request.principal.user)
        return view(request, *args, **kwargs)

    return needs(Role.VIEWER)(guarded)


def redirect_to_password() -> HttpResponse:
    """Redirects to the page that replaces a one-time password, the only page that such a password opens."""
    return redirect("password")
