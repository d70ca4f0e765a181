"""Tables of the ways in which people sign in besides a password."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class ExternalAccount(models.Model):
    """A person's account at a provider or a proxy, by which they sign in here. `issuer`: the address of the
    provider, or "proxy". `subject`: what it calls the person; it never changes there."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="external_accounts")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_per_external_account")
        ]


class TotpDevice(models.Model):
    """A person's app for one-time codes. `sealed_secret`: workspaces.authentication.factors.secret_box.
    `confirmed_at`: null until the person has typed a code of it. `last_step`: the half minute of the last
    code that was accepted; no earlier one is accepted any more."""

    user = models.OneToOneField("workspaces.User", models.CASCADE, related_name="totp_device")
    sealed_secret = models.CharField(max_length=200)
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)


class RecoveryCode(models.Model):
    """A code that replaces a second factor once; only its SHA-256 is stored, and the row is deleted when it
    is used."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64)


class Passkey(models.Model):
    """A person's WebAuthn credential. `credential_id` and `public_key` are base64url."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=100)
    credential_id = models.CharField(max_length=1400, unique=True)
    public_key = models.CharField(max_length=2000)
    sign_count = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    last_used_at = models.DateTimeField(null=True)
