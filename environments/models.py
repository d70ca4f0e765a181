"""A workspace's own environments and their versions. Only `environments.resolver` writes the state of a
version."""

from __future__ import annotations

from django.db import models

from environments.states import EnvironmentKind, VersionState
from workspaces.models import User, Workspace


class Environment(models.Model):
    """A named environment of a workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="environments")
    name = models.CharField(max_length=100)
    last_version = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="environment_name_once")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class EnvironmentVersion(models.Model):
    """A version of an environment; its source never changes. `source`: the text as given, whose form depends
    on the kind. `python`: the minor version that it is resolved for ("3.11"), "" for kinds whose source
    brings its own. `lock`: exactly what nodes install, with hashes; "" until it is locked. `failure`: why it
    could not be resolved. `attempts`: how often resolving it has begun, the last time at `started_at`."""

    environment = models.ForeignKey(Environment, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    kind = models.CharField(
        max_length=16,
        default=EnvironmentKind.PIP,
        choices=[(kind.value, kind.value) for kind in EnvironmentKind],
    )
    source = models.TextField()
    python = models.CharField(max_length=10, blank=True)
    lock = models.TextField(blank=True)
    state = models.CharField(
        max_length=16,
        default=VersionState.RESOLVING,
        choices=[(state.value, state.value) for state in VersionState],
    )
    failure = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["environment", "number"], name="environment_version_once")
        ]
        ordering = ["-number"]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=models.Q(state=VersionState.RESOLVING.value),
                name="version_resolving",
            )
        ]

    def __str__(self) -> str:
        return f"{self.environment.name} {self.number}"

    @property
    def is_locked(self) -> bool:
        return self.state == VersionState.LOCKED
