"""Authenticates requests to the API: by a person's token, or (with DRF's own class and CSRF) by the browser's
session."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from workspaces import tokens
from workspaces.access import Principal, membership_principal, session_principal
from workspaces.models import User, Workspace

SCHEME = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """Authenticates by `Authorization: Bearer TOKEN`. A wrong token is refused even if the request has a
    valid session."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        text = bearer_token(request)
        if text is None:
            return None
        try:
            requested = request.headers.get(tokens.WORKSPACE_HEADER, "")
            principal = tokens.authenticate(text, requested, request.headers.get("User-Agent", ""))
            if principal is not None:
                tokens.require_scope(principal.scope, request.method or "", request.path)
        except tokens.TokenExpired as error:
            raise AuthenticationFailed(error.message) from error
        except tokens.TokenRefused as error:
            raise PermissionDenied(error.message) from error
        if principal is None:
            raise AuthenticationFailed("This token is not valid here; make a new one under Settings.")
        return principal.user, principal

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        return f'{SCHEME} realm="TrainHub"'


def bearer_token(request: Request) -> str | None:
    """Returns the token with which a request is sent, None if it is sent without one."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip() if scheme.lower() == SCHEME.lower() else None


def principal_of(request: Request) -> Principal | None:
    """Returns the person who sent the request, acting in the workspace of the token, or for a session in the
    one that the request's header names, else in that of the session; None without membership."""
    if isinstance(request.auth, Principal):
        return request.auth
    if not isinstance(request.user, User):
        return None
    slug = request.headers.get(tokens.WORKSPACE_HEADER, "")
    if not slug:
        return session_principal(request.user, request.session)
    workspace = Workspace.objects.filter(slug=slug).first()
    return None if workspace is None else membership_principal(request.user, workspace)
