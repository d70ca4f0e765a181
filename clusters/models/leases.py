"""Models of leases, and of the time in which the hub received reports."""

from __future__ import annotations

from django.db import models

from clusters.models.nodes import Node
from workspaces.models import Workspace


class Lease(models.Model):
    """GPUs (UUIDs) or process slots of one node that an attempt of a run holds until they are released.

    `holder` is the run's id, because this app does not depend on runs. Other workspaces than `workspace` see
    only that the resources are busy. `person`: the id of the account whose use it is, 0 = unknown. `limit_s`:
    the attempt ends so many seconds after the lease began at the latest. `charged_at`: since when the use
    accounts include it. `promised_to`: the holder to whose reservation it passes when it is released. A
    reservation is a lease of attempt 0, which counts as no use. `data`: the lists of files that the attempt
    downloads, as [key, bytes] (see trainhub_launch.scheduler.data_room)."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="leases")
    holder = models.CharField(max_length=32, db_index=True)
    attempt = models.PositiveIntegerField()
    workspace = models.ForeignKey(Workspace, models.SET_NULL, null=True, related_name="+")
    label = models.CharField(
        max_length=200, help_text="What a waiting run's message calls the holder, e.g. 'run 41'."
    )
    gpus = models.JSONField(default=list)
    slots = models.PositiveIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0, db_default=0)
    cpus = models.FloatField(default=0.0, db_default=0.0)
    data = models.JSONField(default=list, db_default=[])
    created_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True, blank=True)
    person = models.BigIntegerField(default=0, db_default=0)
    limit_s = models.PositiveIntegerField(null=True, blank=True)
    charged_at = models.DateTimeField(null=True, blank=True)
    promised_to = models.CharField(max_length=32, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "holder", "attempt"], name="one_lease_per_node_and_attempt"
            )
        ]
        indexes = [
            models.Index(fields=["node"], condition=models.Q(released_at=None), name="lease_held"),
            models.Index(fields=["node"], condition=models.Q(charged_at=None), name="lease_uncharged"),
        ]


class Hearing(models.Model):
    """A single row with the time in which the hub could receive reports. Silence of a node outside of it does
    not count."""

    since = models.DateTimeField()
    until = models.DateTimeField()
