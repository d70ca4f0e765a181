"""Leases of GPUs and process slots: how attempts acquire and release what nodes offer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from clusters.models import Cluster, Lease, Node
from clusters.node_facts import nodes_by_name
from clusters.offers import offers
from clusters.visibility import may_use
from live.publish import publish_on_commit
from live.topics import node_topic
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.placement import PlacedNode, Placement, place
from trainhub_launch.scheduler.queue import Release
from trainhub_launch.scheduler.rejections import Refusal
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import IS_NULL, update_rows
from workspaces.models import Workspace


def forbidden(cluster: Cluster, workspace: Workspace) -> Refusal | None:
    if may_use(cluster, workspace):
        return None
    sentence = f"This workspace may not use the cluster {cluster.name!r}; choose another one."
    return Refusal(sentence, "resources.cluster", permanent=True)


def acquire(
    cluster: Cluster,
    demand: Demand,
    *,
    holder: str,
    attempt: int,
    label: str,
    workspace: Workspace,
    person: int = 0,
    expected: tuple[FreeNode, ...] | None = None,
) -> Placement | Refusal:
    """Leases all that `demand` requires and returns the placement, or returns the reason why not. A repeated
    call for the same attempt returns the same placement.

    `person`: the id of the account whose use it is. `expected`: the nodes that were chosen for it, as they
    were then; they are leased only if none offers less now. Call inside a transaction: the cluster's row (on
    SQLite the whole database) is locked until it ends.
    """
    # The lock comes before every read: of two placements that run at once, the second sees the leases of the
    # first.
    _lock_cluster(cluster.pk)
    refusal = forbidden(cluster, workspace)
    if refusal is not None:
        return refusal
    existing = _unreserve(holder, attempt)
    if existing:
        return _placement(existing)
    names = None if expected is None else [node.name for node in expected]
    nodes = offers(cluster, workspace, names=names)
    if expected is not None and not still_offer(expected, nodes):
        return Refusal(
            "Another run was placed first; the queue is checked again.", "resources.cluster", permanent=False
        )
    chosen = place(demand, nodes)
    if isinstance(chosen, Placement):
        common = Lease(
            holder=holder,
            attempt=attempt,
            label=label,
            workspace=workspace,
            person=person,
            limit_s=demand.limit_s,
            memory_bytes=demand.memory_bytes,
            cpus=demand.cpus,
            data=sorted(map(list, demand.data)),
        )
        _take(chosen, common)
    return chosen


def release(holder: str, attempt: int, node: Node | None = None) -> int:
    """Releases the leases of the attempt, on one node or on all. Returns the number of ended leases."""
    with transaction.atomic(savepoint=False):
        # Read first: after the update the filter on open leases matches none of them.
        held = [lease for lease in _open_leases(holder, attempt) if node is None or lease.node_id == node.pk]
        # The end of an attempt leads here several times.
        if not held:
            return 0
        open_leases = {"pk": tuple(lease.pk for lease in held), "released_at": IS_NULL}
        count = update_rows(Lease, open_leases, released_at=timezone.now())
        _pass_on(lease for lease in held if lease.promised_to)
        _announce(lease.node for lease in held)
    return count


@compiled
def _open_leases(holder: str, attempt: int) -> QuerySet[Lease]:
    leases = Lease.objects.filter(holder=holder, attempt=attempt, released_at=None).select_related("node")
    return leases.only("node__name", "gpus", "slots", "promised_to")


def reserve(holder: str, label: str, workspace: Workspace, attempts: Iterable[tuple[str, int]]) -> None:
    """Promises `holder` what the given attempts (of other holders) hold: as they give it up, it passes to a
    reservation of `holder`. The caller has locked the cluster's row."""
    for other, attempt in attempts:
        for lease in Lease.objects.filter(holder=other, attempt=attempt, released_at=None):
            Lease.objects.filter(pk=lease.pk).update(promised_to=holder)
            Lease.objects.filter(holder=holder, attempt=0, node=lease.node).exclude(released_at=None).delete()
            Lease.objects.get_or_create(
                node_id=lease.node_id,
                holder=holder,
                attempt=0,
                defaults={"label": label, "workspace": workspace, "charged_at": timezone.now()},
            )


def reservations(cluster: Cluster) -> dict[str, dict[str, tuple[tuple[str, ...], int]]]:
    """Returns holder -> node name -> the GPUs and process slots that are reserved for it there."""
    reserved: dict[str, dict[str, tuple[tuple[str, ...], int]]] = defaultdict(dict)
    for holder, node, gpus, slots in _reserved(cluster.pk):
        reserved[holder][node] = (tuple(gpus), slots)
    return dict(reserved)


@compiled
def _reserved(cluster_id: int) -> QuerySet[Lease, tuple[str, str, list[str], int]]:
    leases = Lease.objects.filter(node__cluster_id=cluster_id, attempt=0, released_at=None)
    return leases.values_list("holder", "node__name", "gpus", "slots")


def promised_by(holder: str) -> list[str]:
    """Returns the holders that have not yet given up what is promised to this one."""
    rows = Lease.objects.filter(promised_to=holder, released_at=None)
    return list(rows.order_by("holder").values_list("holder", flat=True).distinct())


def _pass_on(promised: Iterable[Lease]) -> None:
    """Gives what was released to the reservations to which it was promised, if they still exist."""
    for lease in promised:
        # Two attempts may give up parts of one node at once.
        Cluster.objects.select_for_update(of=("self",)).get(nodes=lease.node_id)
        reserved = Lease.objects.filter(
            node=lease.node_id, holder=lease.promised_to, attempt=0, released_at=None
        ).first()
        if reserved is not None:
            reserved.gpus, reserved.slots = [*reserved.gpus, *lease.gpus], reserved.slots + lease.slots
            reserved.save(update_fields=["gpus", "slots"])


def releases(cluster: Cluster, now: datetime) -> dict[str, list[Release]]:
    """Returns what the nodes of the cluster get back at the latest when, by their names: the open leases of
    runs with a time limit."""
    by_node: dict[str, list[Release]] = defaultdict(list)
    for node, created_at, limit_s, gpus, slots in _limited(cluster.pk):
        after_s = (created_at - now).total_seconds() + (limit_s or 0)
        by_node[node].append(Release(max(0.0, after_s), len(gpus), slots))
    return by_node


@compiled
def _limited(cluster_id: int) -> QuerySet[Lease, tuple[str, datetime, int | None, list[str], int]]:
    held = Lease.objects.filter(node__cluster_id=cluster_id, released_at=None).exclude(limit_s=None)
    return held.values_list("node__name", "created_at", "limit_s", "gpus", "slots")


def _take(placement: Placement, common: Lease) -> None:
    """Creates the leases of a placement; `common` has the fields that they share."""
    nodes = nodes_by_name(part.name for part in placement.nodes)
    Lease.objects.bulk_create(
        Lease(
            node=nodes[part.name],
            holder=common.holder,
            attempt=common.attempt,
            label=common.label,
            workspace=common.workspace,
            person=common.person,
            limit_s=common.limit_s,
            gpus=list(part.gpus),
            slots=part.slots,
            memory_bytes=common.memory_bytes,
            cpus=common.cpus,
            data=common.data,
        )
        for part in placement.nodes
    )
    _announce(nodes.values())


def still_offer(expected: tuple[FreeNode, ...], nodes: tuple[FreeNode, ...]) -> bool:
    """Returns whether each of the `expected` nodes still offers at least what it did then. If not, a run in
    front of the queue may need the rest."""
    now = {node.name: node for node in nodes if node.takes_runs}
    return all(
        before.name in now
        and set(before.gpus) <= set(now[before.name].gpus)
        and before.slots <= now[before.name].slots
        and before.memory <= now[before.name].memory
        and before.cpus <= now[before.name].cpus
        and before.data.in_use >= now[before.name].data.in_use
        for before in expected
    )


def _unreserve(holder: str, attempt: int) -> list[Lease]:
    """Releases what is reserved for the holder, and deletes what the attempt had and gave back. Returns what
    it holds already."""
    # Mostly the holder has had nothing before.
    earlier = _leases_of(holder)
    if any(lease.attempt == 0 and lease.released_at is None for lease in earlier):
        # What was reserved for it is free for it now; if the transaction is rolled back, it stays reserved.
        Lease.objects.filter(holder=holder, attempt=0, released_at=None).update(released_at=timezone.now())
    own = [lease for lease in earlier if lease.attempt == attempt]
    held = [lease for lease in own if lease.released_at is None]
    if own and not held:
        # An attempt that was placed before may be placed on the same node again.
        Lease.objects.filter(pk__in=[lease.pk for lease in own]).delete()
    return held


@compiled
def _lock_cluster(cluster_id: int) -> QuerySet[Cluster, tuple[int]]:
    return Cluster.objects.select_for_update().filter(pk=cluster_id).values_list("pk")


@compiled
def _leases_of(holder: str) -> QuerySet[Lease]:
    return Lease.objects.filter(holder=holder).select_related("node").order_by("pk")


def _placement(leases: Iterable[Lease]) -> Placement:
    return Placement(
        tuple(
            PlacedNode(
                name=lease.node.name,
                address=lease.node.address,
                gpus=tuple(lease.gpus),
                slots=lease.slots,
                cores=lease.node.cores,
                interface=lease.node.interface,
                infiniband=lease.node.infiniband,
            )
            for lease in leases
        )
    )


def _announce(nodes: Iterable[Node]) -> None:
    for node in nodes:
        publish_on_commit(node_topic(node.pk), {"type": "node.changed", "node": node.name})
