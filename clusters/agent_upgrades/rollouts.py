"""Orders to nodes to run this hub's version of the node program, a few nodes at a time. The first node that
fails ends the rollout, and all that have not begun stay as they are."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters import journal
from clusters.agent_upgrades.agent_versions import AgentVersion, agent_of
from clusters.agent_upgrades.states import RolloutState, UpgradeState
from clusters.allocations.node_program import node_archive, pack_problem
from clusters.models import AgentRollout, Cluster, Node, NodeUpgrade
from clusters.node_reports.heartbeat import status
from clusters.node_reports.hub_uptime import listening_window
from clusters.node_reports.notices import agent_version
from clusters.states import NodeStatus
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.errors import LaunchError, SpecError
from trainhub_launch.machine import SELF_UPGRADE
from trainhub_launch.upgrades.program_order import DONE, STEPS
from workspaces import audit
from workspaces.models import User

log = logging.getLogger(__name__)
MAX_AT_ONCE = 1000
# A node says more often what it does, except while it downloads and while its new program starts.
SILENT_FOR = timedelta(minutes=10)
MAX_WHY = 600


class UpgradeRefused(LaunchError):
    """Nothing was ordered; the message is a sentence that says why."""


@dataclass(frozen=True)
class NodeChoice:
    """A node of a cluster before a rollout. `refusal`: why it would not take part, "" if it would."""

    agent: AgentVersion
    refusal: str

    @property
    def node(self) -> Node:
        return self.agent.node


def node_choices(nodes: Sequence[Node], *, may_go_back: bool = False) -> list[NodeChoice]:
    """Returns for each node whether an order would be for it now. Nodes with this hub's version are left
    out."""
    now = timezone.now()
    window = listening_window(now)
    choices = []
    for node in nodes:
        agent = agent_of(node)
        if agent.version not in ("", agent_version()):
            choices.append(NodeChoice(agent, _refusal(agent, status(node, now, window), may_go_back)))
    return choices


def order_for_cluster(
    cluster: Cluster, who: User, *, at_once: int = 1, may_go_back: bool = False
) -> AgentRollout:
    """Orders all nodes of the cluster that can follow now. Raises UpgradeRefused, and SpecError for a wrong
    number."""
    if not 1 <= at_once <= MAX_AT_ONCE:
        raise SpecError("at_once", f"must be a whole number from 1 to {MAX_AT_ONCE}, not {at_once}")
    nodes = list(_nodes().filter(cluster=cluster, removed_at=None, revoked_at=None).order_by("name"))
    choices = node_choices(nodes, may_go_back=may_go_back)
    chosen = [choice.node for choice in choices if not choice.refusal]
    if not chosen:
        reasons = " ".join(f"{choice.node.name}: {choice.refusal}" for choice in choices[:8])
        raise UpgradeRefused(
            f"No node of {cluster.name} can be upgraded from here. {reasons}"
            if choices
            else f"All nodes of {cluster.name} that have reported run {agent_version()}."
        )
    return _order(cluster, chosen, who, at_once, may_go_back=may_go_back)


def order_for_node(node: Node, who: User, *, may_go_back: bool = False) -> AgentRollout:
    """Orders one node. Raises UpgradeRefused."""
    node = _nodes().get(pk=node.pk)
    if node.agent_version == agent_version():
        raise UpgradeRefused(f"{node.name} runs {agent_version()} already.")
    choices = node_choices([node], may_go_back=may_go_back)
    refusal = choices[0].refusal if choices else "It has not reported yet."
    if refusal:
        raise UpgradeRefused(f"{node.name} cannot be upgraded from here. {refusal}")
    return _order(node.cluster, [node], who, 1, may_go_back=may_go_back)


def _refusal(agent: AgentVersion, state: NodeStatus, may_go_back: bool) -> str:
    if agent.remedy:
        return agent.remedy
    if agent.is_ahead and not may_go_back:
        return (
            f"It runs {agent.version}, which is newer than this hub's {agent_version()}; to take it back, "
            "order that expressly."
        )
    # The reports of a newer agent may be refused, and it asks for orders all the same.
    if state is not NodeStatus.READY and not (agent.is_ahead and state is not NodeStatus.REVOKED):
        return f"It is {state}: start its agent, or wait until it reports."
    return ""


def _order(
    cluster: Cluster, nodes: Sequence[Node], who: User, at_once: int, *, may_go_back: bool
) -> AgentRollout:
    # Before the transaction: packing takes seconds.
    archive = None if (problem := pack_problem()) else node_archive()
    if archive is None:
        raise UpgradeRefused(f"This hub cannot pack the program for nodes: {problem}.")
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        busy = NodeUpgrade.objects.filter(node__in=nodes, ended_at=None).select_related("node").first()
        if busy is not None:
            raise UpgradeRefused(
                f"{busy.node.name} has an order already; wait until it is over, or cancel that."
            )
        rollout = AgentRollout.objects.create(
            cluster=cluster,
            version=agent_version(),
            sha256=archive.sha256,
            size=archive.path.stat().st_size,
            at_once=at_once,
            may_go_back=may_go_back,
            state=RolloutState.RUNNING,
            created_by=who,
        )
        NodeUpgrade.objects.bulk_create(
            NodeUpgrade(
                rollout=rollout, node=node, state=UpgradeState.WAITING, from_version=node.agent_version
            )
            for node in nodes
        )
        audit.record(
            who,
            "node.upgrade_ordered",
            nodes[0].name if len(nodes) == 1 else cluster.name,
            version=rollout.version,
            nodes=[node.name for node in nodes][:50],
            at_once=at_once,
            may_go_back=may_go_back,
        )
        _advance(rollout, timezone.now())
    return rollout


def cancel_rollout(rollout: AgentRollout, who: User) -> None:
    """Leaves out all nodes that have not begun. Those that have end what they do. Raises UpgradeRefused if
    the rollout is over."""
    with transaction.atomic():
        current = AgentRollout.objects.select_for_update().get(pk=rollout.pk)
        if current.state != RolloutState.RUNNING:
            raise UpgradeRefused("This rollout is over already.")
        _leave_out_waiting(current, f"Canceled by {who}.", timezone.now())
        _end(current, RolloutState.CANCELED, timezone.now())
        audit.record(who, "node.upgrade_canceled", current.cluster.name, version=current.version)


def take_step(node: Node, part_id: int, step: str, version: str, why: str) -> None:
    """Takes up what a node says about its order, again and again with the same result. Raises UpgradeRefused
    if it is no order that the node follows."""
    now = timezone.now()
    with transaction.atomic():
        part = (
            NodeUpgrade.objects.select_for_update(of=("self",))
            .select_related("rollout", "node__cluster")
            .filter(pk=part_id, node=node)
            .first()
        )
        if part is None or (part.ended_at is not None and part.state != step):
            raise UpgradeRefused("This order is over.")
        if part.ended_at is not None:
            return
        if step in STEPS:
            # The time of the last step tells a node that has stopped from one that is slow.
            NodeUpgrade.objects.filter(pk=part.pk).update(step=step, ordered_at=now)
            _announce(part.node)
            return
        if step == DONE and version != part.rollout.version:
            step, why = UpgradeState.FAILED, f"It says that it is done, but runs {version[:32]}."
        _end_part(part, UpgradeState.DONE if step == DONE else UpgradeState.FAILED, why, now)
        _advance(AgentRollout.objects.select_for_update().get(pk=part.rollout_id), now)


def tend_rollouts(now: datetime) -> None:
    """Ends the parts of nodes that have said nothing for long, and orders the next ones. Packs the program
    while there are nodes that could take it, so that no order waits for that."""
    capable = Node.objects.filter(revoked_at=None, capabilities__contains=SELF_UPGRADE)
    if capable.exclude(agent_version__in=("", agent_version())).exists() and (problem := pack_problem()):
        log.info("Agents cannot be upgraded: this hub cannot pack the program, because %s", problem)
    overdue = NodeUpgrade.objects.filter(state=UpgradeState.ORDERED, ordered_at__lt=now - SILENT_FOR)
    for pk in list(overdue.values_list("pk", flat=True)):
        with transaction.atomic():
            part = (
                NodeUpgrade.objects.select_for_update(of=("self",))
                .select_related("rollout", "node__cluster")
                .filter(pk=pk, ended_at=None, ordered_at__lt=now - SILENT_FOR)
                .first()
            )
            if part is not None:
                minutes = int(SILENT_FOR.total_seconds() // 60)
                why = f"It has said nothing about the order for {minutes} minutes. Look at its agent's log."
                _end_part(part, UpgradeState.FAILED, why, now)
                _advance(AgentRollout.objects.select_for_update().get(pk=part.rollout_id), now)


def _advance(rollout: AgentRollout, now: datetime) -> None:
    """Orders the next nodes, or ends the rollout. The caller has locked it."""
    if rollout.state != RolloutState.RUNNING:
        return
    parts = list(rollout.parts.select_related("node"))
    failed = next((part for part in parts if part.state == UpgradeState.FAILED), None)
    if failed is not None:
        _leave_out_waiting(rollout, f"Not ordered, because {failed.node.name} failed.", now)
        _end(rollout, RolloutState.FAILED, now)
        return
    waiting = [part for part in parts if part.state == UpgradeState.WAITING]
    ordered = sum(part.state == UpgradeState.ORDERED for part in parts)
    if not waiting and not ordered:
        _end(rollout, RolloutState.DONE, now)
    for part in waiting[: max(0, rollout.at_once - ordered)]:
        NodeUpgrade.objects.filter(pk=part.pk).update(state=UpgradeState.ORDERED, ordered_at=now)
        # The node's session reads it within a second, and the next answer to a report names it.
        Node.objects.filter(pk=part.node_id).update(upgrade_order=part.pk)
        journal.add(part.node, "upgrade", f"Ordered to run version {rollout.version} of the agent.", now)
        _announce(part.node)


def _end_part(part: NodeUpgrade, state: UpgradeState, why: str, now: datetime) -> None:
    # PostgreSQL refuses the character NUL in texts.
    why = why.replace("\x00", "")[:MAX_WHY]
    NodeUpgrade.objects.filter(pk=part.pk).update(state=state, step="", why=why, ended_at=now)
    Node.objects.filter(pk=part.node_id, upgrade_order=part.pk).update(upgrade_order=None)
    version = part.rollout.version
    message = (
        f"Runs version {version} of the agent now."
        if state == UpgradeState.DONE
        else f"Goes on with the agent of before, not {version}: {why}"
    )
    journal.add(part.node, "upgrade", message, now)
    _announce(part.node)


def _leave_out_waiting(rollout: AgentRollout, why: str, now: datetime) -> None:
    rollout.parts.filter(state=UpgradeState.WAITING).update(
        state=UpgradeState.SKIPPED, why=why[:MAX_WHY], ended_at=now
    )


def _end(rollout: AgentRollout, state: RolloutState, now: datetime) -> None:
    AgentRollout.objects.filter(pk=rollout.pk).update(state=state, ended_at=now)


def _announce(node: Node) -> None:
    publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})


def _nodes() -> QuerySet[Node]:
    return Node.objects.select_related("cluster")
