"""What a run is told while its cluster grows for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from clusters.models import Cluster, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import STARTING, MachineState
from trainhub_launch.offers import Demand, FreeNode, counted
from trainhub_launch.refusals import span


def sentence(cluster: Cluster, wanted: Demand, nodes: Sequence[FreeNode], now: datetime) -> str:
    """Why a run waits for nodes that its cluster's provider makes; empty where it waits for something
    else."""
    if (
        not cluster.provider
        or cluster.drained_at is not None
        or not any(_can_come(node, wanted) for node in nodes)
    ):
        return ""
    there = min(wanted.nodes, sum(node.can_now(wanted) for node in nodes))
    coming = [machine for machine in machines.active(cluster) if machine.state in STARTING]
    if there < wanted.nodes and coming:
        return _scaling_up(wanted, there, coming, now)
    return _failed(cluster, now)


def _can_come(node: FreeNode, wanted: Demand) -> bool:
    return node.is_coming and node.can_ever(wanted)


def _scaling_up(wanted: Demand, there: int, coming: list[ProvidedMachine], now: datetime) -> str:
    number = min(len(coming), wanted.nodes - there)
    are = "is" if there == 1 or wanted.nodes == 1 else "are"
    asked = span((now - coming[0].asked_at).total_seconds())
    told = (
        f"Scaling up: {there} of {counted(wanted.nodes, 'node')} {are} there, {number} "
        f"{'is' if number == 1 else 'are'} coming "
        f"(asked {asked} ago)."
    )
    trouble = next((machine for machine in coming if machine.error), None)
    return (
        told
        if trouble is None
        else f"{told} {trouble.name} has failed before and is tried again: {trouble.error}"
    )


def _failed(cluster: Cluster, now: datetime) -> str:
    """Nothing is asked of a provider for a while after all that it was asked for has failed."""
    again = machines.next_growth_at(cluster)
    if again is None:
        return ""
    last = cluster.machines.filter(state=MachineState.FAILED).order_by("-changed_at").first()
    error = last.error if last else ""
    later = f"in {span((again - now).total_seconds())}" if again > now else "now"
    return f"Scaling up has failed and is tried again {later}: {error}"
