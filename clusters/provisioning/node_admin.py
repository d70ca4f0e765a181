"""Operations on a node for operators: drain, resume, monitor only, low priority and remove."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from clusters import journal
from clusters.enrolment.node_tokens import revoke_node
from clusters.models import Cluster, Gpu, Lease, Node, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import LEAVING
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.errors import LaunchError
from trainhub_launch.scheduler.capacity import counted
from workspaces import audit
from workspaces.models import User


class NodeBusy(LaunchError):
    """The node is not in a state that allows this; the message says what to do first."""


@transaction.atomic
def drain(node: Node, who: User) -> None:
    """Stops new runs on the node; present runs continue. Repeating it changes nothing."""
    current = _locked(node)
    if current.drained_at is None:
        _write(current, who, "drained", f"Drained by {who}: it takes no new runs.", drained_at=timezone.now())


@transaction.atomic
def resume(node: Node, who: User) -> None:
    """Lets the node take runs again. Raises NodeBusy for a node that is removed or being released."""
    current = _locked(node)
    if ProvidedMachine.objects.filter(node=current, state__in=LEAVING).exists():
        raise NodeBusy(f"{current.name} is being released by its provider and no longer takes runs.")
    if current.drained_at is not None:
        _write(current, who, "resumed", f"Resumed by {who}: it takes runs again.", drained_at=None)


@transaction.atomic
def set_monitor_only(node: Node, monitor_only: bool, who: User) -> None:
    """Sets whether the node is monitored only and never takes runs. Present runs continue."""
    current = _locked(node)
    if current.monitor_only != monitor_only:
        message = (
            f"Made monitor-only by {who}: it never takes a run."
            if monitor_only
            else f"Opened to runs by {who}."
        )
        _write(current, who, "monitor_only", message, monitor_only=monitor_only)


@transaction.atomic
def set_low_priority(node: Node, is_low: bool, who: User) -> None:
    """Sets whether the node may disappear at any time; its runs then restart without using up a retry."""
    current = _locked(node)
    if current.low_priority != is_low:
        message = (
            f"Marked as low-priority by {who}: it may disappear."
            if is_low
            else f"Low priority removed by {who}."
        )
        _write(current, who, "low_priority", message, low_priority=is_low)


@transaction.atomic
def remove(node: Node, who: User, *, force: bool = False) -> None:
    """Removes the node from all lists and revokes it; its history stays and its name may join again.

    Raises NodeBusy while runs hold resources there, unless with `force`: then these runs end as lost and
    their resources are free at once, because the operator confirms that the machine is gone. A machine that a
    provider created is released by the provider."""
    current = _locked(node)
    labels = list(
        Lease.objects.filter(node=current, released_at=None).order_by("pk").values_list("label", flat=True)
    )
    if labels and not force:
        raise NodeBusy(
            f"{current.name} is held by {counted(len(labels), 'run')}; drain it and wait, or remove it by "
            "force: its runs then end as lost."
        )
    machine = (
        ProvidedMachine.objects.select_related("cluster")
        .filter(node=current)
        .exclude(state__in=LEAVING)
        .first()
    )
    if machine is not None:
        # Without this the reconciler would find its node revoked and release it later, with a misleading
        # reason.
        machines.release(machine, f"{who} removed its node", timezone.now(), who.get_username())
    suffix = f", with {counted(len(labels), 'run')} on it" if labels else ""
    retire(current, f"Removed by {who}{suffix}.", who)


def retire(node: Node, message: str, by: User | str = "hub") -> None:
    """Removes the node and its GPUs from all lists and revokes it. Call inside a transaction."""
    if node.removed_at is not None:
        return
    if node.revoked_at is None:
        revoke_node(node, by if isinstance(by, User) else f"the {by}")
    # A machine that joins under this name later counts as a new agent.
    Node.objects.filter(pk=node.pk).update(removed_at=timezone.now(), agent_id="")
    Gpu.objects.filter(node=node).update(present=False)
    journal.add(node, "removed", message)
    audit.record(by, "node.removed", node.name, cluster=node.cluster.name)
    _announce(node)


def _locked(node: Node) -> Node:
    """Returns the current row, with the cluster's row locked: placement takes the same lock, so no run is
    placed meanwhile. Raises NodeBusy for a removed node."""
    Cluster.objects.select_for_update().get(pk=node.cluster_id)
    current = Node.objects.select_related("cluster").get(pk=node.pk)
    if current.removed_at is not None:
        raise NodeBusy(f"{current.name} is removed; to use the machine, let it join again.")
    return current


def _write(node: Node, who: User, kind: str, message: str, **fields: object) -> None:
    Node.objects.filter(pk=node.pk).update(**fields)
    journal.add(node, kind, message)
    audit.record(who, f"node.{kind}", node.name, cluster=node.cluster.name)
    _announce(node)


def _announce(node: Node) -> None:
    publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
