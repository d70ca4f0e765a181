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
        self,
        cluster: Cluster,
        viewer: Workspace | None = None,
        over: Collection[AttemptKey] = (),
        max_age_s: float = 0.0,
    ) -> tuple[FreeNode, ...]:
        if viewer is None:
            return offers.offers(cluster, max_age_s=max_age_s)
        return offers.nodes_of(cluster, viewer, over, max_age_s)
