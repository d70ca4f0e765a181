"""Who may do what where: people, workspaces, memberships, API tokens, the audit trail."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models

from workspaces.states import Role


class User(AbstractUser):
    is_operator = models.BooleanField(default=False, help_text="May manage clusters, nodes and people of this installation.")
    password_is_one_time = models.BooleanField(default=False, help_text="Set by an owner; to be replaced at the first sign-in.")


class Workspace(models.Model):
    """Owns experiments, environments, datastores and models; people are members with a role."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)
    last_run_number = models.PositiveIntegerField(default=0)
    people = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=[(role.value, role.value) for role in Role], default=Role.VIEWER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_role_per_person_and_workspace")]


class ApiToken(models.Model):
    """A person's token for one workspace; only its SHA-256 is kept."""

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12, help_text="First characters, to recognise it.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)


class AuditEvent(models.Model):
    """Append-only: who did what to which object."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.CharField(max_length=150)
    workspace = models.ForeignKey(Workspace, models.CASCADE, null=True, related_name="audit_events")
    verb = models.CharField(max_length=64)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
