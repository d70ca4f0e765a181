"""Sentences for runs that wait while their cluster scales up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from clusters.models import Cluster, ProvidedMachine
from clusters.provisioning import machines
from clusters.provisioning.states import STARTING, MachineState
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted
from trainhub_launch.scheduler.rejections import size_range


def waiting_sentence(cluster: Cluster, demand: Demand, nodes: Sequence[FreeNode], now: datetime) -> str:
    """Returns why a run waits for machines of the cluster's provider, or "" if it waits for something
    else."""
    if (
        not cluster.provider
        or cluster.drained_at is not None
        or not any(_can_come(node, demand) for node in nodes)
    ):
        return ""
    available = min(demand.nodes, sum(node.can_now(demand) for node in nodes))
    starting = [machine for machine in machines.active(cluster) if machine.state in STARTING]
    if available < demand.nodes and starting:
        return _scaling_up(demand, available, starting, now)
    return _failure_sentence(cluster, now)


def _can_come(node: FreeNode, demand: Demand) -> bool:
    return node.is_coming and node.can_ever(demand)


def _scaling_up(demand: Demand, available: int, starting: list[ProvidedMachine], now: datetime) -> str:
    number = min(len(starting), demand.nodes - available)
    are = "is" if available == 1 or demand.nodes == 1 else "are"
    age = size_range((now - starting[0].asked_at).total_seconds())
    progress = (
        f"Scaling up: {available} of {counted(demand.nodes, 'node')} {are} ready, {number} "
        f"{'is' if number == 1 else 'are'} being created "
        f"(requested {age} ago)."
    )
    trouble = next((machine for machine in starting if machine.error), None)
    return (
        progress
        if trouble is None
        else f"{progress} {trouble.name} has failed before and is tried again: {trouble.error}"
    )


def _failure_sentence(cluster: Cluster, now: datetime) -> str:
    """Returns the provider's last error and the time of the next try, or "" if the provider has not failed.

    After a failed request the hub waits before it requests machines again."""
    again = machines.next_growth_at(cluster)
    if again is None:
        return ""
    last = cluster.machines.filter(state=MachineState.FAILED).order_by("-changed_at").first()
    error = last.error if last else ""
    later = f"in {size_range((again - now).total_seconds())}" if again > now else "now"
    return f"Scaling up has failed and is tried again {later}: {error}"
