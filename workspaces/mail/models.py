"""Tables of mail addresses, of invitations by a link, and of the mails that the hub has to send."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from workspaces.states import MailKind, MailState, Role


class MailConfirmation(models.Model):
    """A mail address that a person wants to have, until a link that was sent to it is opened. `digest`: the
    SHA-256 of that link's text, null until it is sent."""

    user = models.OneToOneField("workspaces.User", models.CASCADE, related_name="mail_confirmation")
    address = models.EmailField()
    digest = models.CharField(max_length=64, unique=True, null=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()


class InvitationLink(models.Model):
    """An invitation to a workspace for whoever opens its link, once, until `expires_at`. `address`: where the
    link was sent, "" if its text was shown to the person who made it. `digest`: the SHA-256 of the link's
    text, null until it is sent. `maker`: who made it, or "command line"."""

    workspace = models.ForeignKey("workspaces.Workspace", models.CASCADE, related_name="invitation_links")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    address = models.EmailField(blank=True)
    digest = models.CharField(max_length=64, unique=True, null=True)
    invited_by = models.ForeignKey("workspaces.User", models.CASCADE, null=True, related_name="+")
    maker = models.CharField(max_length=150)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()


class OutgoingMail(models.Model):
    """A mail that the worker has to send, or has sent. A link in it is made when it is sent, so that its text
    is stored nowhere.

    `recipient`: a mail address, or (MailKind.RESET) what somebody typed who forgot a password. `user`: whom
    it concerns, once that is known. `invitation`: what its link belongs to. `topic`: of a
    notice (MailKind.SECURITY) what has changed; `detail`: which, such as the name of a passkey, or
    (MailKind.RETENTION) what is about to be removed, as a sentence."""

    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in MailKind])
    recipient = models.CharField(max_length=254)
    user = models.ForeignKey("workspaces.User", models.CASCADE, null=True, related_name="outgoing_mails")
    invitation = models.ForeignKey(InvitationLink, models.CASCADE, null=True, related_name="mails")
    topic = models.CharField(max_length=32, blank=True, default="", db_default="")
    detail = models.CharField(max_length=200, blank=True, default="", db_default="")
    state = models.CharField(max_length=16, default=MailState.WAITING)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    try_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["try_at"], condition=models.Q(state=MailState.WAITING), name="outgoing_mail_waiting"
            )
        ]
