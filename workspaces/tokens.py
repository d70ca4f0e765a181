"""API tokens of people: random, shown once, kept as SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from workspaces.access import Principal, access_changed, membership_principal
from workspaces.models import ApiToken, User, Workspace

PREFIX = "th"
HINT_LENGTH = 8
USE_IS_NOTED_EVERY = timedelta(minutes=1)


def new_token(prefix: str) -> str:
    """32 random bytes; the prefix tells a person (and a secret scanner) what it is."""
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def digest(text: str) -> str:
    """What is stored of a token; a plain hash is enough because tokens are random, not chosen."""
    return hashlib.sha256(text.encode()).hexdigest()


def issue(user: User, workspace: Workspace, name: str) -> tuple[ApiToken, str]:
    """A new token of `user` for `workspace`, and its text, which exists nowhere else."""
    text = new_token(PREFIX)
    token = ApiToken.objects.create(user=user, workspace=workspace, name=name, digest=digest(text), hint=text[:HINT_LENGTH])
    return token, text


def authenticate(text: str) -> Principal | None:
    """Who holds this token now; None when it is unknown or revoked, or its person left or was switched off."""
    token = (
        ApiToken.objects.select_related("user", "workspace")
        .filter(digest=digest(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None:
        return None
    principal = membership_principal(token.user, token.workspace)
    if principal is not None:
        _note_use(token)
    return principal


def revoke(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
    access_changed(token.user)


def _note_use(token: ApiToken) -> None:
    # A write per request would make every reader queue for SQLite's one writer.
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > USE_IS_NOTED_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_IS_NOTED_EVERY)
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
