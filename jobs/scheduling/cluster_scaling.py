"""Scales clusters that have a provider: requests machines for waiting runs and releases idle ones."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from clusters import offers
from clusters.models import Cluster, Lease, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import STARTING, MachineState
from jobs.queues import waiting_runs
from jobs.queues.demands import queued_with_ids, with_needs
from jobs.queues.waiting_runs import DemandGroup, WaitingQueue
from jobs.quotas.quota_check import QuotaBook
from trainhub_launch.scheduler.autoscaler import Bounds, Decision, ScalableNode, decide
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted
from workspaces.database.compiled_queries import compiled

log = logging.getLogger(__name__)


@compiled
def _growing() -> QuerySet[Cluster]:
    return Cluster.objects.filter(deleted_at=None).exclude(provider="")


def scale_clusters(now: datetime | None = None, only: Collection[str] | None = None) -> bool:
    """Requests missing machines and releases idle ones, in all clusters or only in those named.

    Returns whether any machine was requested.
    """
    now = now or timezone.now()
    clusters = [cluster for cluster in _growing() if only is None or cluster.name in only]
    if not clusters:
        return False
    queues = waiting_runs.read_queues([cluster.name for cluster in clusters])
    quotas = QuotaBook()
    has_requested = False
    for cluster in clusters:
        try:
            demands = _demands(queues.of(cluster.name), quotas)
            has_requested |= _scale(cluster, demands, now)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Cluster %s could not be scaled; the others go on", cluster.name)
    return has_requested


def _demands(queue: WaitingQueue, quotas: QuotaBook) -> list[Demand]:
    """Returns what the waiting runs need, the oldest of the highest priority first, without those over a
    quota: machines would come for a run that may not have them."""
    examples = {run.group: run.pk for run in queue.runs.values()}
    rows = {run.pk: run for run in queued_with_ids(examples.values())} if examples else {}
    needs: dict[DemandGroup, Demand] = {}
    for group, pk in examples.items():
        if pk in rows:
            turn = with_needs(rows[pk])
            if quotas.refusal(turn.run, turn.needs) is None:
                needs[group] = turn.needs
    runs = sorted(queue.runs.values(), key=lambda run: (-run.priority, run.turn))
    return [needs[run.group] for run in runs if run.group in needs]


def _scale(cluster: Cluster, demands: Sequence[Demand], now: datetime) -> bool:
    """Scales one cluster; returns whether machines were requested. Takes no lock if there is nothing to
    do."""
    # Looked at without the lock first: usually there is nothing to do, and this runs after every change.
    if _decision(cluster, demands, now) == Decision():
        return False
    with transaction.atomic():
        # The lock keeps a run from being placed on a node between this decision and its release.
        current = Cluster.objects.select_for_update().get(pk=cluster.pk)
        decision = _decision(current, demands, now)
        if decision.add:
            waiting = f"{counted(len(demands), 'run')} {'waits' if len(demands) == 1 else 'wait'}"
            min_nodes_text = f"the cluster keeps at least {current.min_nodes}"
            machines.request(current, decision.add, waiting if demands else min_nodes_text, now)
        for machine in ProvidedMachine.objects.select_related("cluster").filter(
            cluster=current, node__name__in=decision.release
        ):
            machines.release(machine, "no run needs it", now)
    return bool(decision.add)


def _decision(cluster: Cluster, demands: Sequence[Demand], now: datetime) -> Decision:
    living = machines.active(cluster)
    up = {
        machine.node.name: machine for machine in living if machine.node and machine.state == MachineState.UP
    }
    present = [node for node in offers.offers(cluster) if not node.is_coming]
    nodes = _node_states(cluster, present, up, now)
    # A new machine can do what those can that are there. Without the Python or the container engine that a
    # run needs it would be made in vain, and again after it was released as idle.
    demands = [item for item in demands if not present or any(node.has_abilities(item) for node in present)]
    starting = sum(machine.state in STARTING for machine in living)
    # A monitor-only node carries no runs, but its machine counts as provided.
    leaving = len(living) - starting - sum(item.is_provided for item in nodes)
    open_to_runs = cluster.drained_at is None
    # A drained cluster takes no runs, so machines for waiting runs would only cost money.
    decision = decide(_bounds(cluster), nodes, starting, leaving, demands if open_to_runs else ())
    again = machines.next_growth_at(cluster)
    may_grow = open_to_runs and (again is None or again <= now)
    return decision if may_grow else Decision(0, decision.release)


def _bounds(cluster: Cluster) -> Bounds:
    return Bounds(
        least=cluster.min_nodes,
        most=cluster.max_nodes,
        idle_s=cluster.idle_s,
        gpus=cluster.node_gpus,
        slots=cluster.node_slots,
    )


def _node_states(
    cluster: Cluster, present: Sequence[FreeNode], up: dict[str, ProvidedMachine], now: datetime
) -> list[ScalableNode]:
    leases_here = Lease.objects.filter(node__cluster=cluster)
    busy = set(leases_here.filter(released_at=None).values_list("node__name", flat=True))
    # Idle begins at the end of the last lease, not at the last report: a node reports all the time.
    last = dict(leases_here.exclude(released_at=None).values_list("node__name").annotate(Max("released_at")))
    states = []
    for node in present:
        machine = up.get(node.name)
        idle_s = None
        if machine is not None and node.name not in busy:
            since = max(machine.changed_at, last.get(node.name) or machine.changed_at)
            idle_s = (now - since).total_seconds()
        states.append(
            ScalableNode(
                node,
                is_provided=machine is not None,
                idle_s=idle_s,
                is_protected=node.closed == offers.DRAINED,
            )
        )
    return states
