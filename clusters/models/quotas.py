"""The models of quotas: how much a workspace, or a person in it, may use, and the disk that they use."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from workspaces.models import User, Workspace


class Quota(models.Model):
    """The limits of a workspace (`scope` workspace), of each person in it (people), or of one person there
    (person, which goes before those for each person). None: no limit.

    `gpus`: held at once, in all clusters. `gpu_hours`: in a calendar month (UTC). `waiting_runs`: queued at
    once. `disk_gib`: of the files that the hub stores."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="quotas")
    scope = models.CharField(max_length=16)
    person = models.ForeignKey(User, models.CASCADE, related_name="+", null=True, blank=True)
    gpus = models.PositiveIntegerField(null=True, blank=True)
    gpu_hours = models.FloatField(null=True, blank=True)
    waiting_runs = models.PositiveIntegerField(null=True, blank=True)
    disk_gib = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "scope"], condition=models.Q(person=None), name="one_quota_per_scope"
            ),
            models.UniqueConstraint(fields=["workspace", "person"], name="one_quota_per_person"),
        ]


class DiskUse(models.Model):
    """The bytes that the hub stores for a workspace (`person` None), or for a person in it, when they were
    measured last, and what was accepted since (jobs.quotas.disk_use)."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="disk_uses")
    person = models.ForeignKey(User, models.CASCADE, related_name="+", null=True)
    size_bytes = models.BigIntegerField()
    measured_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(person=None), name="one_disk_use_per_workspace"
            ),
            models.UniqueConstraint(fields=["workspace", "person"], name="one_disk_use_per_person"),
        ]
