"""API tokens of people: random, shown once, kept as SHA-256. A token has a scope, and may expire."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from workspaces.access import Principal, access_changed, membership_principal
from workspaces.models import ApiToken, User, Workspace
from workspaces.states import TokenScope

PREFIX = "th"
HINT_LENGTH = 8
USE_IS_NOTED_EVERY = timedelta(minutes=1)
LIFETIMES_DAYS = (30, 90, 365)
DEFAULT_LIFETIME_DAYS = 90
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
READS_BY_POST = re.compile(
    r"/api/v1/runs/preview/"
    r"|/(ajax-)?api/[23]\.0/(preview/)?mlflow/"
    r"(runs/search|experiments/search|experiments/search-datasets|logged-models/search|registered-models/get-latest-versions)"
)
"""Requests that only ask a question which is too long for an address."""


class TokenRefused(Exception):
    """The token is known, but not good for this request. `message` is a sentence with the remedy."""

    status = 403

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TokenExpired(TokenRefused):
    status = 401

    def __init__(self, expired_at: datetime) -> None:
        super().__init__(
            f"This token expired on {expired_at:%Y-%m-%d at %H:%M} UTC; make a new one under Settings."
        )


class TokenOnlyReads(TokenRefused):
    def __init__(self) -> None:
        super().__init__("This token may only read; make one with the scope write under Settings.")


def new_token(prefix: str) -> str:
    """32 random bytes; the prefix tells a person (and a secret scanner) what it is."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def digest(text: str) -> str:
    """What is stored of a token; a plain hash is enough because tokens are random, not chosen."""
    return hashlib.sha256(text.encode()).hexdigest()


def issue(
    user: User,
    workspace: Workspace,
    name: str,
    *,
    scope: TokenScope = TokenScope.WRITE,
    lifetime: timedelta | None = None,
) -> tuple[ApiToken, str]:
    """A new token of `user` for `workspace`, and its text, which exists nowhere else. `lifetime` None:
    without an end."""
    text = new_token(PREFIX)
    expires_at = None if lifetime is None else timezone.now() + lifetime
    token = ApiToken.objects.create(
        user=user,
        workspace=workspace,
        name=name,
        digest=digest(text),
        hint=text[:HINT_LENGTH],
        scope=scope,
        expires_at=expires_at,
    )
    return token, text


def authenticate(text: str) -> Principal | None:
    """Who holds this token now; None when it is unknown or revoked, or its person left or was switched off.

    Raises TokenExpired. What the token may do is for `require_scope` to check.
    """
    token = (
        ApiToken.objects.select_related("user", "workspace")
        .filter(digest=digest(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None:
        return None
    now = timezone.now()
    if token.expires_at is not None and token.expires_at <= now:
        raise TokenExpired(token.expires_at)
    principal = membership_principal(token.user, token.workspace, TokenScope(token.scope))
    if principal is not None:
        _note_use(token, now)
    return principal


def require_scope(scope: TokenScope, method: str, path: str) -> None:
    """The one check of what a token may do. Raises TokenOnlyReads where a token that only reads would change
    something."""
    if scope is TokenScope.WRITE or method in SAFE_METHODS:
        return
    if method != "POST" or READS_BY_POST.fullmatch(path) is None:
        raise TokenOnlyReads


def revoke(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    access_changed(token.user)


def revoke_all(user: User) -> int:
    """Every token of `user` in every workspace; returns how many were still good."""
    now = timezone.now()
    valid = ApiToken.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), user=user, revoked_at=None)
    revoked = valid.update(revoked_at=now)
    access_changed(user)
    return revoked


def _note_use(token: ApiToken, now: datetime) -> None:
    # A write per request would make every reader queue for SQLite's one writer.
    if token.last_used_at is None or now - token.last_used_at > USE_IS_NOTED_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
