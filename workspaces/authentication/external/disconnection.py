"""Ends signing in by an account at a provider or a proxy.

The row stays: without it, the next sign-in there would connect the account again by its mail address."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from workspaces import audit
from workspaces.authentication import sessions
from workspaces.authentication.confirmation import has_password
from workspaces.models import ExternalAccount, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

PROXY = "proxy"


class DisconnectRefused(Exception):
    """It would lock the person out; `message` is a sentence with the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def connected_accounts(user: User) -> QuerySet[ExternalAccount]:
    return ExternalAccount.objects.filter(user=user, disconnected_at=None).order_by("pk")


def label(account: ExternalAccount) -> str:
    """Returns what pages call the provider of the account."""
    oidc = settings.SIGN_IN.oidc
    return str(oidc.name) if account.issuer == oidc.issuer else account.issuer


@transaction.atomic
def disconnect(who: User, account: ExternalAccount) -> bool:
    """Lets nobody sign in by this account any more, until its person connects it again; returns False if it
    is disconnected already. If an operator does it, the person's sessions end. Raises DisconnectRefused if
    `who` is the person and has no other way to sign in."""
    # Locked, so that two requests at the same moment do not take both of two ways.
    user = User.objects.select_for_update().get(pk=account.user_id)
    is_own = who.pk == user.pk
    if is_own and not _has_other_way(user, account):
        raise DisconnectRefused(_refusal(label(account)))
    rows = ExternalAccount.objects.filter(pk=account.pk, disconnected_at=None)
    if not rows.update(disconnected_at=timezone.now()):
        return False
    if not is_own:
        sessions.end_all_sessions(user)
    audit.record(who, "person.disconnected", user.get_username(), issuer=account.issuer)
    by = "" if is_own else ", by an operator"
    notify_person(user, SignInChange.DISCONNECTED, f"{label(account)}{by}")
    return True


def _has_other_way(user: User, account: ExternalAccount) -> bool:
    # Passkeys do not count: they are asked for after a password or a provider, and open nothing alone.
    if has_password(user):
        return True
    sign_in = settings.SIGN_IN
    offered = [sign_in.oidc.issuer, PROXY if sign_in.header.name else ""]
    others = connected_accounts(user).exclude(pk=account.pk)
    return others.filter(issuer__in=[issuer for issuer in offered if issuer]).exists()


def _refusal(name: str) -> str:
    if settings.SIGN_IN.has_passwords:
        return (
            f"{name} is your only way to sign in. Ask an operator of this hub for a link for a new password, "
            "choose one, and disconnect the account then."
        )
    return (
        f"{name} is your only way to sign in: this hub accepts no passwords. If you must not use it any "
        "more, ask an operator of this hub, who can disconnect it."
    )
