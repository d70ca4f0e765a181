"""Removes second factors: a passkey for its person, and all factors for an operator, if they are lost."""

from __future__ import annotations

from django.db import transaction

from workspaces import audit
from workspaces.authentication.factors import recovery
from workspaces.models import Passkey, RecoveryCode, TotpDevice, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange


@transaction.atomic
def remove_passkey(passkey: Passkey) -> None:
    """Ends one passkey of a person as a second factor."""
    user = passkey.user
    if not Passkey.objects.filter(pk=passkey.pk).delete()[0]:
        return
    recovery.delete_if_needless(user)
    audit.record(user, "factor.removed", user.get_username(), kind="passkey", name=passkey.name)
    notify_person(user, SignInChange.PASSKEY_REMOVED, passkey.name)


@transaction.atomic
def reset_factors(who: User | str, user: User) -> bool:
    """Deletes the person's app, passkeys and recovery codes; returns False if there was none."""
    deleted = [model.objects.filter(user=user).delete()[0] for model in (TotpDevice, Passkey, RecoveryCode)]
    if not any(deleted):
        return False
    audit.record(who, "factor.reset", user.get_username())
    notify_person(user, SignInChange.FACTORS_RESET, "by an operator")
    return True
