"""What people do to a node: drain and resume it, only watch it, call it low-priority, remove it."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from clusters import journal
from clusters.enrolment.node_tokens import revoke
from clusters.models import Cluster, Gpu, Lease, Node, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import LEAVING
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.errors import LaunchError
from trainhub_launch.offers import counted
from workspaces import audit
from workspaces.models import User


class NodeBusy(LaunchError):
    """The node is not in a state that allows this; the message says what to do first."""


@transaction.atomic
def drain(node: Node, who: User) -> None:
    """Give it no new runs; those that run there go on. Asked again, it changes nothing."""
    current = _locked(node)
    if current.drained_at is None:
        _write(current, who, "drained", f"Drained by {who}: it takes no new runs.", drained_at=timezone.now())


@transaction.atomic
def resume(node: Node, who: User) -> None:
    """Let it take runs again. Raises NodeBusy for one that is being released or is removed."""
    current = _locked(node)
    if ProvidedMachine.objects.filter(node=current, state__in=LEAVING).exists():
        raise NodeBusy(f"{current.name} is being released by its provider and takes no runs any more.")
    if current.drained_at is not None:
        _write(current, who, "resumed", f"Resumed by {who}: it takes runs again.", drained_at=None)


@transaction.atomic
def set_monitor_only(node: Node, is_watched_only: bool, who: User) -> None:
    """Have it watched and never given a run, or end that. What runs there goes on."""
    current = _locked(node)
    if current.monitor_only != is_watched_only:
        message = (
            f"Made monitor-only by {who}: it never takes a run."
            if is_watched_only
            else f"Opened to runs by {who}."
        )
        _write(current, who, "monitor_only", message, monitor_only=is_watched_only)


@transaction.atomic
def set_low_priority(node: Node, is_low: bool, who: User) -> None:
    """Whether it may vanish at any time; its runs then begin anew without using up a retry."""
    current = _locked(node)
    if current.low_priority != is_low:
        message = (
            f"Marked as low-priority by {who}: it may vanish."
            if is_low
            else f"No longer low-priority, says {who}."
        )
        _write(current, who, "low_priority", message, low_priority=is_low)


@transaction.atomic
def remove(node: Node, who: User, *, force: bool = False) -> None:
    """Take it off the lists for good: revoked, its history kept, its name free to join anew.

    Raises NodeBusy while something is held there, unless by `force`: that ends as lost, and what it held is
    free at once, because whoever removes the machine vouches that it is gone. One that a provider made is
    released by it."""
    current = _locked(node)
    held = list(
        Lease.objects.filter(node=current, released_at=None).order_by("pk").values_list("label", flat=True)
    )
    if held and not force:
        raise NodeBusy(
            f"{current.name} is held by {counted(len(held), 'run')}; drain it and wait, or remove it by "
            "force: what runs there "
            "then ends as lost."
        )
    machine = (
        ProvidedMachine.objects.select_related("cluster")
        .filter(node=current)
        .exclude(state__in=LEAVING)
        .first()
    )
    if machine is not None:
        machines.release(machine, f"{who} removed its node", timezone.now(), who.get_username())
    also = f", with {counted(len(held), 'run')} on it" if held else ""
    retire(current, f"Removed by {who}{also}.", who)


def retire(node: Node, message: str, by: User | str = "hub") -> None:
    """Off the lists, with its GPUs, and not listened to any more. Inside a transaction."""
    if node.removed_at is not None:
        return
    if node.revoked_at is None:
        revoke(node, by if isinstance(by, User) else f"the {by}")
    # Whatever reports under this name later is heard as somebody new.
    Node.objects.filter(pk=node.pk).update(removed_at=timezone.now(), agent_id="")
    Gpu.objects.filter(node=node).update(present=False)
    journal.add(node, "removed", message)
    audit.record(by, "node.removed", node.name, cluster=node.cluster.name)
    _announce(node)


def _locked(node: Node) -> Node:
    """As it is now. Placing locks the cluster too, so nothing is placed there meanwhile. Raises NodeBusy for
    a removed one."""
    Cluster.objects.select_for_update().get(pk=node.cluster_id)
    current = Node.objects.select_related("cluster").get(pk=node.pk)
    if current.removed_at is not None:
        raise NodeBusy(f"{current.name} is removed; to use the machine again, let it join anew.")
    return current


def _write(node: Node, who: User, kind: str, message: str, **fields: object) -> None:
    Node.objects.filter(pk=node.pk).update(**fields)
    journal.add(node, kind, message)
    audit.record(who, f"node.{kind}", node.name, cluster=node.cluster.name)
    _announce(node)


def _announce(node: Node) -> None:
    publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
