"""Compute targets: clusters, their nodes and GPUs, and who holds what."""

from __future__ import annotations

from django.db import models

from workspaces.models import Workspace


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
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


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
