"""Who asks the API: a person's token, or (DRF's own class, with CSRF) the browser's session."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from workspaces import tokens
from workspaces.access import Principal, membership_principal
from workspaces.models import User

SCHEME = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer TOKEN`. A wrong token is refused even where a session would do."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        principal = tokens.authenticate(text.strip())
        if principal is None:
            raise AuthenticationFailed("This token is not valid here; make a new one under Settings.")
        return principal.user, principal

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 - DRF's signature
        return f'{SCHEME} realm="TrainHub"'


def principal_of(request: Request) -> Principal | None:
    """Whoever asks, acting in the token's workspace or in their own first one; None for a stranger."""
    if isinstance(request.auth, Principal):
        return request.auth
    return membership_principal(request.user) if isinstance(request.user, User) else None
