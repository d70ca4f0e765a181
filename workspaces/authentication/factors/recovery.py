"""Recovery codes: each replaces a second factor that is lost, once."""

from __future__ import annotations

import secrets

from django.db import transaction

from workspaces import audit
from workspaces.access import has_second_factor
from workspaces.authentication.token_text import digest
from workspaces.models import RecoveryCode, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

COUNT = 10
# Without letters and digits that look alike.
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
GROUP, GROUPS = 5, 3


@transaction.atomic
def new_codes(user: User) -> list[str]:
    """Returns new codes, which are stored nowhere; earlier ones no longer work."""
    User.objects.select_for_update().get(pk=user.pk)
    codes = [
        "-".join("".join(secrets.choice(ALPHABET) for _ in range(GROUP)) for _ in range(GROUPS))
        for _ in range(COUNT)
    ]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=digest(_plain(code))) for code in codes)
    audit.record(user, "factor.codes_created", user.get_username())
    notify_person(user, SignInChange.RECOVERY_CODES)
    return codes


@transaction.atomic
def use_code(user: User, text: str) -> bool:
    """Returns whether this is one of the person's codes, and uses it up."""
    # Who deletes the row uses the code.
    if not RecoveryCode.objects.filter(user=user, digest=digest(_plain(text))).delete()[0]:
        return False
    audit.record(user, "factor.code_used", user.get_username(), left=count(user))
    return True


def count(user: User) -> int:
    return RecoveryCode.objects.filter(user=user).count()


def delete_if_needless(user: User) -> None:
    """Deletes the codes of a person who has no second factor any more."""
    if not has_second_factor(user):
        RecoveryCode.objects.filter(user=user).delete()


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter in ALPHABET)
