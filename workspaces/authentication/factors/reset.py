"""Takes all second factors from a person who has lost them, for operators."""

from __future__ import annotations

from django.db import transaction

from workspaces import audit
from workspaces.models import Passkey, RecoveryCode, TotpDevice, User


@transaction.atomic
def reset_factors(who: User | str, user: User) -> bool:
    """Deletes the person's app, passkeys and recovery codes; returns False if there was none."""
    deleted = [model.objects.filter(user=user).delete()[0] for model in (TotpDevice, Passkey, RecoveryCode)]
    if not any(deleted):
        return False
    audit.record(who, "factor.reset", user.get_username())
    return True
