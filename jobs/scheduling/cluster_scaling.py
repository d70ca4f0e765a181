"""Clusters with a provider grow for the queue and shrink when nobody needs their nodes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import Max
from django.utils import timezone

from clusters import leases
from clusters.models import Cluster, Lease, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import STARTING, MachineState
from jobs.scheduling.queue_placement import turns
from trainhub_launch.offers import Demand, FreeNode, counted
from trainhub_launch.scaling import Bounds, Decision, Standing, decide

log = logging.getLogger(__name__)


def tick(now: datetime | None = None, only: Collection[str] | None = None) -> bool:
    """Ask for the machines that are lacking and release those that are idle; whether anything was asked for.

    In all clusters, or only in those of these names.
    """
    now = now or timezone.now()
    growing = Cluster.objects.filter(deleted_at=None).exclude(provider="")
    clusters = list(growing if only is None else growing.filter(name__in=only))
    if not clusters:
        return False
    demands: dict[str, list[Demand]] = defaultdict(list)
    for turn in turns(only):
        demands[turn.spec.resources.cluster].append(turn.wanted)
    grown = False
    for cluster in clusters:
        try:
            grown |= _scale(cluster, demands[cluster.name], now)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Cluster %s could not be scaled; the others go on", cluster.name)
    return grown


def _scale(cluster: Cluster, demands: Sequence[Demand], now: datetime) -> bool:
    """Nearly always there is nothing to do, and nothing is locked."""
    if _decision(cluster, demands, now) == Decision():
        return False
    with transaction.atomic():
        # Nothing is placed on a node between the look and its release.
        current = Cluster.objects.select_for_update().get(pk=cluster.pk)
        told = _decision(current, demands, now)
        if told.add:
            waiting = f"{counted(len(demands), 'run')} {'waits' if len(demands) == 1 else 'wait'}"
            least = f"at least {current.min_nodes} are to be there"
            machines.request(current, told.add, waiting if demands else least, now)
        for machine in ProvidedMachine.objects.select_related("cluster").filter(
            cluster=current, node__name__in=told.release
        ):
            machines.release(machine, "nobody needs it", now)
    return bool(told.add)


def _decision(cluster: Cluster, demands: Sequence[Demand], now: datetime) -> Decision:
    living = machines.active(cluster)
    up = {
        machine.node.name: machine for machine in living if machine.node and machine.state == MachineState.UP
    }
    offers = [node for node in leases.offers(cluster) if not node.is_coming]
    nodes = _standing(cluster, offers, up, now)
    coming = sum(machine.state in STARTING for machine in living)
    # One that is only watched carries nothing, and is there all the same.
    leaving = len(living) - coming - sum(item.is_provided for item in nodes)
    open_to_runs = cluster.drained_at is None
    told = decide(_bounds(cluster), nodes, coming, leaving, demands if open_to_runs else ())
    again = machines.next_growth_at(cluster)
    may_grow = open_to_runs and (again is None or again <= now)
    return told if may_grow else Decision(0, told.release)


def _bounds(cluster: Cluster) -> Bounds:
    return Bounds(
        least=cluster.min_nodes,
        most=cluster.max_nodes,
        idle_s=cluster.idle_s,
        gpus=cluster.node_gpus,
        slots=cluster.node_slots,
    )


def _standing(
    cluster: Cluster, offers: Sequence[FreeNode], up: dict[str, ProvidedMachine], now: datetime
) -> list[Standing]:
    held = Lease.objects.filter(node__cluster=cluster)
    busy = set(held.filter(released_at=None).values_list("node__name", flat=True))
    last = dict(held.exclude(released_at=None).values_list("node__name").annotate(Max("released_at")))
    found = []
    for node in offers:
        machine = up.get(node.name)
        idle_s = None
        if machine is not None and node.name not in busy:
            since = max(machine.changed_at, last.get(node.name) or machine.changed_at)
            idle_s = (now - since).total_seconds()
        found.append(
            Standing(
                node, is_provided=machine is not None, idle_s=idle_s, is_kept=node.closed == leases.DRAINED
            )
        )
    return found
