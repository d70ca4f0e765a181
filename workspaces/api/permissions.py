from __future__ import annotations

from django.http import Http404
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from workspaces.access import Principal, lacking
from workspaces.api import schema as _registered  # noqa: F401 - views come with it
from workspaces.api.authentication import principal_of
from workspaces.api.problems import ApiProblem
from workspaces.authentication.confirmation import is_confirmed_request
from workspaces.states import Role


class PrincipalRequest(Request):
    """The request that an API view behind `AtLeast` receives."""

    principal: Principal


class _RolePermission(BasePermission):
    reading: Role
    writing: Role

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        who = principal_of(request)
        if who is None:
            raise Http404
        needed = self.reading if request.method in ("GET", "HEAD", "OPTIONS") else self.writing
        if not who.may(needed):
            raise ApiProblem(403, lacking(who, needed))
        if who.user.password_is_one_time:
            raise ApiProblem(403, "Replace your one-time password first: sign in on the page.")
        asks_for_password = getattr(view, "asks_for_password", False) and request.method not in (
            "GET",
            "HEAD",
            "OPTIONS",
        )
        if (
            asks_for_password
            and not isinstance(request.auth, Principal)
            and not is_confirmed_request(request)
        ):
            raise ApiProblem(
                403, "Confirm your password first, on the page /settings/confirm/; programs use an API token."
            )
        request.principal = who  # type: ignore[attr-defined]
        return True


# Named like a class, because it stands where the REST framework expects permission classes.
def AtLeast(role: Role, *, writing: Role | None = None) -> type[BasePermission]:  # noqa: N802
    """Returns a permission class: 401 without sign-in, 404 without membership, 403 below `role`; sets
    `request.principal`.

    A view with `asks_for_password = True` accepts changes by a session only if its password was typed
    recently. Use: `permission_classes = [AtLeast(Role.VIEWER)]`, or with `writing=Role.CONTRIBUTOR` for
    unsafe methods."""
    return type(f"AtLeast{role.title()}", (_RolePermission,), {"reading": role, "writing": writing or role})
