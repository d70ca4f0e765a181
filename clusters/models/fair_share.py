"""Models of fair shares: the shares of workspaces in a cluster, and the use that counts against them."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models

from clusters.models.nodes import Cluster
from workspaces.models import Workspace


class ClusterShare(models.Model):
    """The share of a workspace in a cluster, in relation to those of the others. Without a row it is 1."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="shares")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    share = models.FloatField(validators=[MinValueValidator(0)])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "workspace"], name="one_share_per_workspace")
        ]


class UseAccount(models.Model):
    """The decayed use of a cluster by one person in one workspace: `amount` GPU-seconds as of `as_of`.

    Holds the leases with `charged_at`; those without are added when it is read. `person`: an account's id,
    0 = unknown."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    person = models.BigIntegerField(default=0)
    amount = models.FloatField(default=0.0)
    as_of = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "workspace", "person"], name="one_use_account")
        ]


class MonthlyUse(models.Model):
    """GPU-seconds of a person in a workspace in one calendar month (UTC), in all clusters. Process slots of
    runs without GPUs do not count. Holds the leases with `charged_at`, as `UseAccount` does."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    person = models.BigIntegerField(default=0)
    month = models.DateField(help_text="Its first day.")
    gpu_seconds = models.FloatField(default=0.0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "month", "person"], name="one_use_per_month")
        ]
