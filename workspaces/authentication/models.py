"""Tables of the ways in which people sign in, of their sessions and of failed attempts."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class ExternalAccount(models.Model):
    """A person's account at a provider or a proxy, by which they sign in here. `issuer`: the address of the
    provider, or "proxy". `subject`: what it calls the person; it never changes there.
    `disconnected_at`: since when it opens nothing any more, although its provider may still name the person's
    mail address."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="external_accounts")
    issuer = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(default=timezone.now)
    disconnected_at = models.DateTimeField(null=True)

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


class SignInAttempts(models.Model):
    """Failed attempts to sign in that `workspaces.authentication.login_throttle` counts under one key. Times
    are in seconds since 1970. Until `known_until` the key is that of a name at an address from which its
    person has signed in."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.FloatField(default=0)
    last_at = models.FloatField(default=0)
    known_until = models.FloatField(default=0)


class BrowserSession(models.Model):
    """What a person can know about one of their sessions, which Django stores under `session_key`. `browser`
    and `address`: of the request that was noted last, at `last_seen_at`."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="browser_sessions")
    session_key = models.CharField(max_length=40, unique=True)
    browser = models.CharField(max_length=100, blank=True)
    address = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)


class PasswordLink(models.Model):
    """A link by which its person chooses a password, once, until `expires_at`. Only its SHA-256 is stored;
    the row is deleted when the link is used. `is_by_mail`: the person asked for it on the sign-in page."""

    user = models.ForeignKey("workspaces.User", models.CASCADE, related_name="password_links")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    is_by_mail = models.BooleanField(default=False, db_default=False)
