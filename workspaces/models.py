"""Permissions (people, workspaces, memberships, API tokens), the audit trail, and channels for
notifications."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

# Django finds models only in this module, and in what it imports.
from workspaces.authentication.clients import client_notice
from workspaces.authentication.models import BrowserSession as BrowserSession  # noqa: PLC0414
from workspaces.authentication.models import ExternalAccount as ExternalAccount  # noqa: PLC0414
from workspaces.authentication.models import Passkey as Passkey  # noqa: PLC0414
from workspaces.authentication.models import PasswordLink as PasswordLink  # noqa: PLC0414
from workspaces.authentication.models import RecoveryCode as RecoveryCode  # noqa: PLC0414
from workspaces.authentication.models import SignInAttempts as SignInAttempts  # noqa: PLC0414
from workspaces.authentication.models import TotpDevice as TotpDevice  # noqa: PLC0414
from workspaces.hub_metrics.models import HubProcess as HubProcess  # noqa: PLC0414
from workspaces.mail.models import InvitationLink as InvitationLink  # noqa: PLC0414
from workspaces.mail.models import MailConfirmation as MailConfirmation  # noqa: PLC0414
from workspaces.mail.models import OutgoingMail as OutgoingMail  # noqa: PLC0414
from workspaces.states import Role, TokenScope


class User(AbstractUser):
    """The account of a person, or a service account, which programs use by tokens. `email` is empty, or an
    address that its person has confirmed.

    `service_workspace`: the workspace to which a service account belongs, None for a person. `made_by`: who
    made a service account, or "command line"."""

    display_name = models.CharField(max_length=100, blank=True, default="", db_default="")
    is_operator = models.BooleanField(
        default=False, help_text="May manage clusters, nodes and people of this installation."
    )
    password_is_one_time = models.BooleanField(
        default=False, help_text="Set by an owner; to be replaced at the first sign-in."
    )
    service_workspace = models.ForeignKey(
        "Workspace", models.CASCADE, null=True, blank=True, related_name="service_accounts"
    )
    made_by = models.CharField(max_length=150, blank=True, default="", db_default="")

    class Meta(AbstractUser.Meta):
        constraints = [
            models.UniqueConstraint(
                Lower("email"), condition=~models.Q(email=""), name="one_person_per_mail_address"
            )
        ]

    @property
    def full_label(self) -> str:
        """The user name, with the name that the person has given themselves: `Ada Lovelace (ada)`."""
        return f"{self.display_name} ({self.username})" if self.display_name else self.username

    @property
    def is_service_account(self) -> bool:
        return self.service_workspace_id is not None


class Workspace(models.Model):
    """Owns experiments, environments, datastores and models; people are members with a role. While it is
    archived, its members can only read."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)
    last_run_number = models.PositiveIntegerField(default=0)
    archived_at = models.DateTimeField(null=True, blank=True)
    people = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """`is_from_groups`: a group of the person at a provider or a proxy gave it, and the next sign-in without
    that group takes it away."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(
        max_length=16, choices=[(role.value, role.value) for role in Role], default=Role.VIEWER
    )
    is_from_groups = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_role_per_person_and_workspace")
        ]


class Invitation(models.Model):
    """An owner's invitation of a person with an account to become a member. It has no effect until the person
    accepts."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="invitations")
    user = models.ForeignKey(User, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role])
    invited_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user"], name="one_invitation_per_person_and_workspace"
            )
        ]


class ApiToken(models.Model):
    """A person's token for one workspace, or (`workspace` None) for all of theirs, of which each request
    names one; or that of a service account. Only its SHA-256 is stored. A token without `expires_at` does not
    expire. `last_client`: the program that used it last, as it called itself."""

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12, help_text="First characters, to recognise it.")
    scope = models.CharField(
        max_length=8, choices=[(scope.value, scope.words) for scope in TokenScope], default=TokenScope.WRITE
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_client = models.CharField(max_length=100, blank=True, default="", db_default="")
    revoked_at = models.DateTimeField(null=True, blank=True)

    @property
    def client_notice(self) -> str:
        """What to know about the program that used the token last; "" if there is nothing."""
        return client_notice(self.last_client)


class DeviceLogin(models.Model):
    """The request of a program for a token, which a person allows or refuses in a browser (RFC 8628). Only
    the SHA-256 of the program's code is stored; `user_code` is what the person compares. `state`: pending,
    allowed or refused. The row is deleted with the answer to the program."""

    digest = models.CharField(max_length=64, unique=True)
    user_code = models.CharField(max_length=8, unique=True)
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=8)
    address = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=8, default="pending")
    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="+")
    interval_s = models.PositiveIntegerField()
    polled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)


class AuditEvent(models.Model):
    """One action: who did what to which object. Rows are only added; what they say is never changed.

    `position` and `seal`: its place in the chain and its hash there (workspaces.audit_trail.chain); null and
    empty until it is sealed, a few seconds later."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.CharField(max_length=150)
    # A workspace that is gone would take its events out of the chain.
    workspace = models.ForeignKey(Workspace, models.PROTECT, null=True, related_name="audit_events")
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    position = models.BigIntegerField(null=True, unique=True, editable=False)
    # The default in the database is for a hub of the version before, which does not know this column.
    seal = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)


class AuditAnchor(models.Model):
    """The one row that says where the chain of audit events begins: behind the last event that was deleted
    because of its age."""

    position = models.BigIntegerField(default=0)
    seal = models.CharField(max_length=64)


class Secret(models.Model):
    """A value that only runs and webhooks get to see. `user` None: the workspace's, otherwise that person's
    in this workspace.

    `sealed`: the value, encrypted (workspaces.secrets.keyring). `version` counts the values that it had.
    `is_masked`: whether logs can be masked for it."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="secrets")
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="secrets")
    name = models.CharField(max_length=64)
    sealed = models.BinaryField()
    version = models.PositiveIntegerField(default=1)
    is_masked = models.BooleanField(default=True)
    changed_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"], condition=models.Q(user=None), name="one_secret_per_workspace"
            ),
            models.UniqueConstraint(
                fields=["workspace", "user", "name"],
                condition=models.Q(user__isnull=False),
                name="one_secret_per_person",
            ),
        ]


class HubSecret(models.Model):
    """A value of the hub itself, such as the key with which it logs in elsewhere; nobody gets to see it.

    `sealed`: the value, encrypted (workspaces.secrets.hub_secrets)."""

    name = models.CharField(max_length=64, unique=True)
    sealed = models.BinaryField()


class SecretUse(models.Model):
    """That one run on one node, one webhook, or the hub for a version of an environment, got the value of a
    secret, or the hub for the source of a run. `subject`: the run's id, the channel's name, the environment
    and its version, or the address of the source."""

    secret = models.ForeignKey(Secret, models.CASCADE, related_name="uses")
    kind = models.CharField(max_length=16)
    subject = models.CharField(max_length=100)
    node = models.CharField(max_length=100, blank=True)
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-last_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["secret", "kind", "subject", "node"], name="one_row_per_use_of_a_secret"
            )
        ]


class Channel(models.Model):
    """A way to notify people outside of the pages. `target` is a webhook's URL or a mail address.

    `user` None: the channel is the workspace's own, otherwise that person's for this workspace. `events`:
    keys of `workspaces.notifications.events.CHOICES`. `ours_only`: of alerts only those that concern a run of
    this workspace. `secret` signs the messages of a webhook. While it fails, `failing_since`, `last_error`
    and `try_at` are the beginning, the error and the time of the next try; after a day it is paused.
    `busy_until`: a worker is sending."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="channels")
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="channels")
    kind = models.CharField(max_length=16)
    name = models.CharField(max_length=100)
    target = models.CharField(max_length=1000)
    secret = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)
    ours_only = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="In a row.")
    last_error = models.CharField(max_length=300, blank=True)
    try_at = models.DateTimeField(default=timezone.now)
    busy_until = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]


class Delivery(models.Model):
    """One event for one channel. `state`: waiting, sent, or failed (given up)."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    key = models.CharField(max_length=100)
    event = models.CharField(max_length=32)
    body = models.JSONField()
    state = models.CharField(max_length=16, default="waiting")
    tries = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    try_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["channel", "key"], name="told_once")]
        indexes = [
            models.Index(
                fields=["channel", "try_at"], condition=models.Q(state="waiting"), name="delivery_waiting"
            )
        ]
