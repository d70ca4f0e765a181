"""Nodes that run the agent all the time as a kind of cluster."""

from __future__ import annotations

from collections.abc import Collection

from clusters import offers
from clusters.backends.contract import AttemptKey, OutsideScheduler
from clusters.models import Cluster
from trainhub_launch.scheduler.capacity import FreeNode
from workspaces.models import Workspace


class AgentBackend:
    scheduler: OutsideScheduler | None = None

    def nodes(
        self, cluster: Cluster, viewer: Workspace | None = None, over: Collection[AttemptKey] = ()
    ) -> tuple[FreeNode, ...]:
        return offers.offers(cluster) if viewer is None else offers.nodes_of(cluster, viewer, over)
