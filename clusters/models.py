"""Compute targets: clusters, their nodes and GPUs, and who holds what."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from workspaces.models import User, Workspace


class Cluster(models.Model):
    """A named compute target. No workspace listed = open to all of them."""

    name = models.SlugField(unique=True)
    kind = models.CharField(max_length=16, default="agent")
    workspaces = models.ManyToManyField(Workspace, blank=True, related_name="clusters")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A machine with a stable name. `interpreters`: [{path, version}]; `vitals`: the last heartbeat as JSON."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes")
    name = models.SlugField(unique=True)
    token_digest = models.CharField(max_length=64, unique=True)
    hostname = models.CharField(max_length=255, blank=True)
    address = models.CharField(max_length=64, blank=True)
    interface = models.CharField(max_length=32, blank=True)
    agent_version = models.CharField(max_length=32, blank=True)
    cores = models.PositiveIntegerField(default=0)
    slots = models.PositiveIntegerField(default=0)
    memory_bytes = models.BigIntegerField(default=0)
    infiniband = models.BooleanField(default=False)
    mpi = models.CharField(max_length=64, blank=True)
    run_as = models.CharField(max_length=64, blank=True)
    interpreters = models.JSONField(default=list)
    vitals = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    last_report_at = models.DateTimeField(null=True, blank=True)
    boot_id = models.CharField(max_length=64, blank=True, help_text="Of the machine; another one means that it was restarted.")
    agent_id = models.CharField(max_length=32, blank=True, help_text="Of the agent process that reported last.")
    clock_offset_s = models.FloatField(default=0.0, help_text="The hub's clock less the node's.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class NodeEvent(models.Model):
    """Append-only journal of a node: joined, restarted, renamed, cut off and back, full."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=32)
    message = models.TextField()

    class Meta:
        ordering = ["id"]


class JoinToken(models.Model):
    """Lets one machine become a node, once. `name` blank: the machine names itself."""

    cluster = models.CharField(max_length=50)
    name = models.CharField(max_length=50, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="+", help_text="Who used it.")


class Gpu(models.Model):
    """A device, known by its UUID; `present` False once its node no longer reports it."""

    uuid = models.CharField(primary_key=True, max_length=96)
    node = models.ForeignKey(Node, models.CASCADE, related_name="gpus")
    index = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    memory_bytes = models.BigIntegerField(null=True)
    present = models.BooleanField(default=True)

    class Meta:
        ordering = ["node", "index"]


class Lease(models.Model):
    """GPUs (UUIDs) or process slots of one node held for one attempt of a run, until released.

    `holder` is the run's id: this floor knows no runs. People of another `workspace` see only that something is busy.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="leases")
    holder = models.CharField(max_length=32, db_index=True)
    attempt = models.PositiveIntegerField()
    workspace = models.ForeignKey(Workspace, models.SET_NULL, null=True, related_name="+")
    label = models.CharField(max_length=200, help_text="What a waiting run's message calls the holder, e.g. 'run 41'.")
    gpus = models.JSONField(default=list)
    slots = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["node", "holder", "attempt"], name="one_lease_per_node_and_attempt")]
        indexes = [models.Index(fields=["node"], condition=models.Q(released_at=None), name="lease_held")]


class Hearing(models.Model):
    """One row: the time in which the hub could hear its nodes. Outside of it silence proves nothing."""

    since = models.DateTimeField()
    until = models.DateTimeField()
