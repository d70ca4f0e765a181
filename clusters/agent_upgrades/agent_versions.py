"""Which version each node runs, and how it gets the hub's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusters.enrolment.join_instructions import pip_options
from clusters.kinds import SLURM
from clusters.models import Node
from clusters.node_reports.notices import agent_version
from trainhub_launch.machine import BY_APT, BY_HAND, BY_HUB, BY_SLURM, SELF_UPGRADE, UPGRADE_BY
from trainhub_launch.upgrades.program_order import release_numbers

# What brings a new version to an agent that does not know this yet.
BY_UNKNOWN = "pip"
_REMEDIES = {
    BY_APT: "It is managed by apt: copy the new package to it and run `apt install "
    "./trainhub-node_{version}_$(dpkg --print-architecture).deb`; the package restarts the agent.",
    BY_HUB: "It is the hub's own node, and gets its version when the hub starts again.",
    BY_SLURM: "Each job of Slurm brings the hub's program with it; there is nothing to upgrade.",
    BY_HAND: "TRAINHUB_NODE_UPGRADES=off keeps it from upgrading itself: {by_hand}",
    BY_UNKNOWN: "Its agent cannot upgrade itself yet: {by_hand}",
}
_BY_HAND = (
    "on the node, run `trainhub-node/bin/pip install --upgrade{options}` with the pip of its virtual "
    "environment, and restart the agent, as a service by `systemctl restart trainhub-node`."
)
_NO_PACKAGE = "this hub cannot build the package for nodes, and its log says why."


@dataclass(frozen=True)
class AgentVersion:
    """The version of a node's agent. `way`: SELF_UPGRADE, or what else brings new ones. `remedy`: what to do
    if the node cannot be ordered to upgrade itself, "" if it can or runs the hub's version."""

    node: Node
    way: str

    @property
    def version(self) -> str:
        return self.node.agent_version

    @property
    def hub_version(self) -> str:
        return agent_version()

    @property
    def is_behind(self) -> bool:
        return bool(self.version) and release_numbers(self.version) < release_numbers(agent_version())

    @property
    def is_ahead(self) -> bool:
        return bool(self.version) and release_numbers(self.version) > release_numbers(agent_version())

    @property
    def can_upgrade_itself(self) -> bool:
        return self.way == SELF_UPGRADE

    @property
    def remedy(self) -> str:
        if self.can_upgrade_itself or self.version in ("", agent_version()):
            return ""
        return _REMEDIES[self.way].format(version=agent_version(), by_hand=_by_hand())


def agent_of(node: Node) -> AgentVersion:
    names = node.capabilities.split()
    if SELF_UPGRADE in names:
        return AgentVersion(node, SELF_UPGRADE)
    if node.cluster.kind == SLURM:
        return AgentVersion(node, BY_SLURM)
    ways = (name.removeprefix(UPGRADE_BY) for name in names if name.startswith(UPGRADE_BY))
    return AgentVersion(node, next((way for way in ways if way in _REMEDIES), BY_UNKNOWN))


def agents_of(nodes: Iterable[Node]) -> list[AgentVersion]:
    return [agent_of(node) for node in nodes]


def _by_hand() -> str:
    options = pip_options()
    return _BY_HAND.format(options=options) if options else _NO_PACKAGE
