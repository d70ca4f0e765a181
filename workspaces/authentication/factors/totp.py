"""One-time codes of an app (RFC 6238): six digits that change every half minute."""

from __future__ import annotations

import hmac
import time

import pyotp
from django.db import transaction
from django.utils import timezone

from workspaces import audit
from workspaces.authentication.factors import recovery
from workspaces.authentication.factors.secret_box import Unreadable, seal, unseal
from workspaces.models import TotpDevice, User
from workspaces.security_notices.notices import notify_person
from workspaces.states import SignInChange

ISSUER = "TrainHub"
STEP_S = 30
# Codes of the half minute before and after count, too: clocks differ, and typing takes time.
WINDOW = 1


def has_totp(user: User) -> bool:
    return TotpDevice.objects.filter(user=user).exclude(confirmed_at=None).exists()


def begin_setup(user: User) -> None:
    """Makes a new secret, which counts once a code of it is confirmed. A confirmed one is left alone."""
    if not has_totp(user):
        sealed = seal(pyotp.random_base32(), _context(user))
        TotpDevice.objects.update_or_create(
            user=user, defaults={"sealed_secret": sealed, "created_at": timezone.now(), "last_step": 0}
        )


def setup_secret(user: User) -> str | None:
    """Returns the secret that waits for its confirmation, or None."""
    device = TotpDevice.objects.filter(user=user, confirmed_at=None).first()
    if device is None:
        return None
    try:
        return unseal(device.sealed_secret, _context(user))
    except Unreadable:
        return None


def setup_uri(user: User, secret: str) -> str:
    """Returns the address that apps read from a QR code."""
    return pyotp.TOTP(secret).provisioning_uri(name=user.get_username(), issuer_name=ISSUER)


@transaction.atomic
def confirm_setup(user: User, code: str) -> bool:
    """Makes the waiting secret a second factor if the code is right."""
    if not _accept(user, code, is_confirmed=False):
        return False
    TotpDevice.objects.filter(user=user).update(confirmed_at=timezone.now())
    audit.record(user, "factor.added", user.get_username(), kind="app")
    notify_person(user, SignInChange.APP_ADDED)
    return True


@transaction.atomic
def accept_code(user: User, code: str) -> bool:
    """Returns whether this is a code of the person's app that was not used yet, and uses it up."""
    return _accept(user, code, is_confirmed=True)


@transaction.atomic
def remove(user: User) -> None:
    """Ends the person's app as a second factor, and a setup that was begun."""
    confirmed = TotpDevice.objects.filter(user=user).exclude(confirmed_at=None)
    if confirmed.delete()[0]:
        audit.record(user, "factor.removed", user.get_username(), kind="app")
        notify_person(user, SignInChange.APP_REMOVED)
        recovery.delete_if_needless(user)
    TotpDevice.objects.filter(user=user).delete()


def _accept(user: User, code: str, *, is_confirmed: bool) -> bool:
    # Locked, so that one code is not accepted by two requests at the same moment.
    device = (
        TotpDevice.objects.select_for_update()
        .filter(user=user, confirmed_at__isnull=not is_confirmed)
        .first()
    )
    if device is None:
        return False
    try:
        totp = pyotp.TOTP(unseal(device.sealed_secret, _context(user)), interval=STEP_S)
    except Unreadable:
        return False
    now = int(time.time()) // STEP_S
    for step in range(now - WINDOW, now + WINDOW + 1):
        if step > device.last_step and hmac.compare_digest(totp.generate_otp(step), code):
            TotpDevice.objects.filter(pk=device.pk).update(last_step=step)
            return True
    return False


def _context(user: User) -> str:
    return f"totp {user.pk}"
