"""Clusters, their nodes and GPUs."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from workspaces.models import User, Workspace


class Cluster(models.Model):
    """A named compute target. Without listed workspaces it is open to all of them.

    With a `provider` it scales between `min_nodes` and `max_nodes`: a node without leases for `idle_s` is
    released. `node_gpus`, `node_gpu_model` and `node_slots` describe new nodes. `low_priority`: its nodes may
    disappear at any time, and their runs restart. `avoid_unhealthy_gpus`: GPUs about which a critical alert
    fires get no new runs. A drained cluster takes no new runs. A deleted cluster with a history is only
    hidden since `deleted_at`."""

    name = models.SlugField(unique=True)
    kind = models.CharField(max_length=16, default="agent")
    workspaces = models.ManyToManyField(Workspace, blank=True, related_name="clusters")
    description = models.CharField(max_length=200, blank=True)
    provider = models.SlugField(
        blank=True, help_text="The folder of NODE_PROVIDERS whose executables make and release nodes."
    )
    min_nodes = models.PositiveIntegerField(default=0)
    max_nodes = models.PositiveIntegerField(default=0)
    idle_s = models.PositiveIntegerField(default=600)
    node_gpus = models.PositiveIntegerField(default=0)
    node_gpu_model = models.CharField(max_length=64, blank=True)
    node_slots = models.PositiveIntegerField(default=8)
    low_priority = models.BooleanField(default=False)
    avoid_unhealthy_gpus = models.BooleanField(default=True)
    drained_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A machine with a stable name. `interpreters`: [{path, version}]; `vitals`: the last heartbeat as JSON
    (`inventory.vitals`). `data_cache_bytes`: the size of its cache of data, 0 = unknown; `data_lists`: the
    keys of the lists whose files it has there (see trainhub_launch.data.downloads).

    `drained_at`: takes no new runs since then; present runs continue. `monitor_only`: never takes runs.
    `removed_at`: revoked and shown in no list; its history stays, and its name may join again."""

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
    boot_id = models.CharField(
        max_length=64, blank=True, help_text="Of the machine; another one means that it was restarted."
    )
    agent_id = models.CharField(
        max_length=32, blank=True, help_text="Of the agent process that reported last."
    )
    clock_offset_s = models.FloatField(default=0.0, help_text="The hub's clock less the node's.")
    driver = models.CharField(max_length=64, blank=True)
    cuda = models.CharField(max_length=32, blank=True)
    nvml = models.CharField(max_length=500, blank=True, help_text="Why its GPUs cannot be read.")
    capabilities = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="Names of what it newly can, by spaces.",
    )
    separation = models.CharField(
        max_length=1000, blank=True, default="", db_default="", help_text="What keeps its runs apart."
    )
    containers = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        db_default="",
        help_text="Its container engine, or why there is none.",
    )
    data_cache_bytes = models.BigIntegerField(default=0, db_default=0)
    data_lists = models.JSONField(default=list, db_default=[])
    monitor_only = models.BooleanField(default=False)
    low_priority = models.BooleanField(default=False)
    upgrade_order = models.BigIntegerField(
        null=True, blank=True, help_text="The NodeUpgrade that it is to follow now."
    )
    drained_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class NodeEvent(models.Model):
    """An entry of a node's append-only journal, about the node or one of its GPUs.

    `gpu`: the UUID for an event of a GPU. `key` prevents duplicates of an event that may arrive twice.
    """

    node = models.ForeignKey(Node, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=32)
    message = models.TextField()
    gpu = models.CharField(max_length=96, blank=True)
    code = models.IntegerField(default=0, help_text="Of an XID error its number.")
    key = models.CharField(max_length=80, null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["node", "key"], name="one_event_per_key")]
        indexes = [models.Index(fields=["gpu", "at"], condition=~models.Q(gpu=""), name="event_of_gpu")]


class JoinToken(models.Model):
    """Lets one machine join as a node, once. `name` blank: the host name of the machine."""

    cluster = models.CharField(max_length=50)
    name = models.CharField(max_length=50, blank=True)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    monitor_only = models.BooleanField(default=False)
    used_at = models.DateTimeField(null=True, blank=True)
    node = models.ForeignKey(
        Node, models.SET_NULL, null=True, blank=True, related_name="+", help_text="Who used it."
    )


class Gpu(models.Model):
    """A device, identified by its UUID; `present` is False when its node no longer reports it.

    `state`: ok or lost (`trainhub_launch.machine`); `error`: the reason. `parent`: for a MIG device the UUID
    of its GPU; a GPU in MIG mode (`mig`) is not offered itself."""

    uuid = models.CharField(primary_key=True, max_length=96)
    node = models.ForeignKey(Node, models.CASCADE, related_name="gpus")
    index = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    memory_bytes = models.BigIntegerField(null=True)
    present = models.BooleanField(default=True)
    state = models.CharField(max_length=16, default="ok")
    error = models.TextField(blank=True)
    parent = models.CharField(max_length=96, blank=True)
    profile = models.CharField(max_length=32, blank=True)
    mig = models.BooleanField(default=False)

    class Meta:
        ordering = ["node", "index"]
