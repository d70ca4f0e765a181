"""How many GPUs a waiting run gets that takes all of each node."""

from __future__ import annotations

from clusters.kinds import backend_of
from clusters.models import Cluster
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.whole_nodes import with_all_gpus


class NodeSizes:
    """Reads what clusters offer once, and only for runs that take all GPUs of their nodes."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[FreeNode, ...]] = {}

    def with_gpus(self, demand: Demand, cluster: str) -> Demand:
        """Returns the demand with the number of GPUs of each node of the cluster with that name."""
        return demand if demand.all_gpus is None else with_all_gpus(demand, self._nodes_of(cluster))

    def _nodes_of(self, name: str) -> tuple[FreeNode, ...]:
        if name not in self._nodes:
            cluster = Cluster.objects.filter(name=name, deleted_at=None).first()
            self._nodes[name] = backend_of(cluster).nodes(cluster) if cluster is not None else ()
        return self._nodes[name]
