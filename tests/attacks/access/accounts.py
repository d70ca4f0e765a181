"""Service accounts and accounts of providers in the world of the routes."""

from __future__ import annotations

from typing import Any

from workspaces.access import Principal
from workspaces.models import ExternalAccount, User
from workspaces.service_accounts import accounts
from workspaces.states import Role
from workspaces.tokens import issue

Values = dict[str, Any]


def accounts_of(who: Principal) -> dict[str, Values]:
    """Parameters of routes about them."""
    return {**_service_account(who), **_external_accounts(who)}


def _service_account(who: Principal) -> dict[str, Values]:
    """A service account with a token."""
    account = accounts.create(who.user, who.workspace, "ci-nightly", Role.VIEWER)
    token, _ = issue(account, who.workspace, "pipeline")
    return {
        "/settings/service-accounts/": {"pk": account.pk, "token_id": token.pk},
        "/api/v1/workspaces/<slug:slug>/service-accounts/": {
            "slug": who.workspace.slug,
            "name": account.get_username(),
            "pk": token.pk,
        },
    }


def _external_accounts(who: Principal) -> dict[str, Values]:
    """Accounts at a provider, one of the caller and one of somebody whom operators manage."""
    own = ExternalAccount.objects.create(user=who.user, issuer="proxy", subject="carl")
    vera = User.objects.get(username="vera")
    other = ExternalAccount.objects.create(user=vera, issuer="proxy", subject="vera")
    return {
        "/settings/profile/accounts/": {"pk": own.pk},
        "/people/<int:pk>/accounts/": {"pk": vera.pk, "account_id": other.pk},
    }
