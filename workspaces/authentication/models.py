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
