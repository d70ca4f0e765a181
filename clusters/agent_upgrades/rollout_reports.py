"""What pages, the API and commands show of versions and rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.agent_upgrades.agent_versions import AgentVersion, agents_of
from clusters.agent_upgrades.rollouts import NodeChoice, node_choices
from clusters.agent_upgrades.states import RolloutState
from clusters.models import AgentRollout, Cluster, Node, NodeUpgrade
from clusters.node_reports.notices import agent_version


@dataclass(frozen=True)
class ClusterAgents:
    """The agents of a cluster. `choices`: the nodes with another version than the hub's. `rollout`: the last
    one, None if there was none."""

    cluster: Cluster
    agents: Sequence[AgentVersion]
    choices: Sequence[NodeChoice]
    rollout: AgentRollout | None
    parts: Sequence[NodeUpgrade]

    @property
    def hub_version(self) -> str:
        return agent_version()

    @property
    def versions(self) -> dict[str, int]:
        """Returns version -> number of nodes, the most frequent first."""
        names = [agent.version or "unknown" for agent in self.agents]
        return dict(
            sorted(((name, names.count(name)) for name in set(names)), key=lambda row: (-row[1], row[0]))
        )

    @property
    def ready_count(self) -> int:
        """Returns how many nodes an order would be for now."""
        return sum(not choice.refusal for choice in self.choices)

    @property
    def is_running(self) -> bool:
        return self.rollout is not None and self.rollout.state == RolloutState.RUNNING

    @property
    def done_count(self) -> int:
        return sum(part.state == "done" for part in self.parts)


def cluster_agents(cluster: Cluster) -> ClusterAgents:
    nodes = list(
        Node.objects.select_related("cluster")
        .filter(cluster=cluster, removed_at=None, revoked_at=None)
        .order_by("name")
    )
    rollout = AgentRollout.objects.filter(cluster=cluster).order_by("-pk").first()
    parts = list(rollout.parts.select_related("node")) if rollout else []
    return ClusterAgents(cluster, agents_of(nodes), node_choices(nodes), rollout, parts)


def last_part(node: Node) -> NodeUpgrade | None:
    """Returns the last order of the node, None if there was none."""
    return NodeUpgrade.objects.select_related("rollout").filter(node=node).order_by("-pk").first()
