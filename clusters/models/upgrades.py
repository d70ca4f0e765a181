"""Orders to nodes to run another version of the node program."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from clusters.models.nodes import Cluster, Node
from workspaces.models import User


class AgentRollout(models.Model):
    """One order of an operator: a version for nodes of a cluster, at most `at_once` at a time. `state`: a
    RolloutState. `sha256` and `size` are of the archive. `may_go_back`: the version may be older than that of
    a node."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="rollouts")
    version = models.CharField(max_length=32)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    at_once = models.PositiveIntegerField()
    may_go_back = models.BooleanField(default=False)
    state = models.CharField(max_length=16)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)


class NodeUpgrade(models.Model):
    """The part of one node in a rollout, in the order of the ids. `state`: an UpgradeState; `step`: what the
    node does at present (STEPS of trainhub_launch.upgrades.program_order); `why`: a sentence about a part
    that ended otherwise than done. `from_version`: what the node ran when the order was given."""

    rollout = models.ForeignKey(AgentRollout, models.CASCADE, related_name="parts")
    node = models.ForeignKey(Node, models.CASCADE, related_name="upgrades")
    state = models.CharField(max_length=16)
    step = models.CharField(max_length=16, blank=True)
    why = models.CharField(max_length=600, blank=True)
    from_version = models.CharField(max_length=32, blank=True)
    ordered_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=Q(ended_at=None), name="one_open_upgrade_per_node"
            )
        ]
