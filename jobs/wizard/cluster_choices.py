"""The clusters that the wizard offers at present."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusters.gpus.gpu_models import ModelCount, count_models
from clusters.kinds import backend_of
from clusters.models import Cluster
from clusters.offers import nodes_of
from clusters.visibility import clusters_of
from trainhub_launch.scheduler.capacity import FreeNode, words
from workspaces.models import Workspace


@dataclass(frozen=True)
class ClusterChoice:
    """A cluster with its nodes. `stock`: GPU models and their counts. `outside`: what is said instead of a
    cluster whose queue is outside of the hub. Free and total resources count only nodes that take runs at
    present."""

    name: str
    nodes: tuple[FreeNode, ...]
    stock: tuple[ModelCount, ...] = ()
    outside: str = ""

    @property
    def ready(self) -> tuple[FreeNode, ...]:
        return tuple(node for node in self.nodes if node.takes_runs)

    @property
    def away(self) -> str:
        """Returns the names of the nodes that do not report."""
        return words([node.name for node in self.nodes if node.silent_s is not None])

    @property
    def to_come(self) -> int:
        """Returns how many more nodes the cluster's provider can create for waiting runs."""
        return sum(node.is_coming for node in self.nodes)

    @property
    def gpus_free(self) -> int:
        return sum(len(node.gpus) for node in self.ready)

    @property
    def gpus_total(self) -> int:
        return sum(node.gpus_total for node in self.ready)

    @property
    def gpus_unhealthy(self) -> int:
        return sum(node.gpus_unhealthy for node in self.ready)

    @property
    def slots_free(self) -> int:
        return sum(node.slots for node in self.ready)

    @property
    def slots_total(self) -> int:
        return sum(node.slots_total for node in self.ready)

    @property
    def most_gpus(self) -> int:
        # The largest node limits the GPUs per node, and machines that do not exist yet count, too.
        return max((node.gpus_total for node in self.nodes if node.takes_runs or node.is_coming), default=0)


def cluster_choices(workspace: Workspace) -> tuple[ClusterChoice, ...]:
    return tuple(_choice(cluster, workspace) for cluster in clusters_of(workspace))


def _choice(cluster: Cluster, workspace: Workspace) -> ClusterChoice:
    backend = backend_of(cluster)
    if backend.scheduler is not None:
        nodes = backend.nodes(cluster, workspace)
        return ClusterChoice(cluster.name, nodes, outside=backend.scheduler.describe(cluster))
    stock = count_models(cluster.nodes.filter(revoked_at=None))
    return ClusterChoice(cluster.name, nodes_of(cluster, workspace), stock)


def is_former_cluster(name: str, offered: Iterable[ClusterChoice]) -> bool:
    """Returns whether a cluster that is not offered existed once, so that a draft may still name it."""
    return name not in {choice.name for choice in offered} and Cluster.objects.filter(name=name).exists()
