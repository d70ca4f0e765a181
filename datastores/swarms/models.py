"""Which nodes exchange which files, and what is known about the blocks of these. Part of
`datastores.models`."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from clusters.models import Cluster, Node
from workspaces.models import Workspace


class PeerServer(models.Model):
    """Where a node gives data to other nodes. `fingerprint`: the SHA-256 of the certificate that the hub made
    for it, in hexadecimal digits."""

    node = models.OneToOneField(Node, models.CASCADE, related_name="peer_server")
    address = models.GenericIPAddressField()
    port = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    registered_at = models.DateTimeField(default=timezone.now)

    class Meta:
        app_label = "datastores"

    def __str__(self) -> str:
        return f"{self.node} at {self.address}"


class Swarm(models.Model):
    """The nodes of a cluster that exchange the files with the name `files` (see
    trainhub_launch.data.downloads.DataDownload.swarm). Only `datastores.swarms.exchange` writes it.

    `block_count`: into how many blocks the files are divided; `next_block`: the first that no node was told
    to read; `returned`: those that a node was told to read and has not; `hash_count`: of its rows of
    hashes."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="swarms")
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="swarms")
    files = models.CharField(max_length=64)
    block_count = models.PositiveIntegerField()
    next_block = models.PositiveIntegerField(default=0)
    returned = models.JSONField(default=list)
    hash_count = models.PositiveIntegerField(default=0)
    used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        app_label = "datastores"
        constraints = [models.UniqueConstraint(fields=["cluster", "files"], name="swarm_once")]

    def __str__(self) -> str:
        return f"{self.files[:12]} in {self.cluster}"


class SwarmMember(models.Model):
    """A node that has some of the files. `reading`: the blocks that it reads from the store now;
    `is_complete`: it had all files when it was heard last."""

    swarm = models.ForeignKey(Swarm, models.CASCADE, related_name="members")
    node = models.ForeignKey(Node, models.CASCADE, related_name="swarm_memberships")
    reading = models.JSONField(default=list)
    active_at = models.DateTimeField(default=timezone.now)
    is_complete = models.BooleanField(default=False)

    class Meta:
        app_label = "datastores"
        constraints = [models.UniqueConstraint(fields=["swarm", "node"], name="swarm_member_once")]

    def __str__(self) -> str:
        return f"{self.node} in {self.swarm}"


class BlockHashes(models.Model):
    """Hashes of blocks that a node has read from the store: number (4 bytes) and SHA-256 of each. Rows are
    only added, so that a node asks for those that it does not know yet."""

    swarm = models.ForeignKey(Swarm, models.CASCADE, related_name="hashes")
    node = models.ForeignKey(Node, models.SET_NULL, null=True, related_name="+")
    hashes = models.BinaryField()

    class Meta:
        app_label = "datastores"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"hashes of {self.swarm}"
