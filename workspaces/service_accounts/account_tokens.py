"""Tokens of service accounts, which owners of their workspace make and revoke."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from workspaces import audit, tokens
from workspaces.models import ApiToken, User
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.states import TokenScope

MAX_TOKENS = 20
MAX_NAME = 100
MAX_DAYS = 3650


@transaction.atomic
def create_token(
    who: User, account: User, name: str, scope: TokenScope, lifetime: timedelta | None
) -> tuple[ApiToken, str]:
    """Makes a token of the account for its workspace and returns it with its text, which is stored nowhere.
    `lifetime` None: it does not expire. Raises ServiceAccountError."""
    # Locked, so that two requests at the same moment do not pass the limit together.
    current = (
        User.objects.select_for_update(of=("self",)).select_related("service_workspace").get(pk=account.pk)
    )
    if not current.is_active:
        raise ServiceAccountError("account", f"{account} is disabled; enable it first")
    if ApiToken.objects.filter(user=account, revoked_at=None).count() >= MAX_TOKENS:
        raise ServiceAccountError("name", f"{account} has {MAX_TOKENS} tokens already; revoke one first")
    token, text = tokens.issue(current, current.service_workspace, name, scope=scope, lifetime=lifetime)
    audit.record(who, "token.created", name, token.workspace, scope=token.scope, user=account.get_username())
    return token, text


@transaction.atomic
def revoke_token(who: User, token: ApiToken) -> None:
    tokens.revoke(token)
    audit.record(who, "token.revoked", token.name, token.workspace, user=token.user.get_username())
