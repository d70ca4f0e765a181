"""Preempts runs of low priority for a run at the head of the queue, and keeps what they give up for it.

A run with a priority below 0 may be preempted. Its nodes stop it as for a cancel, with SIGTERM and its
grace period; then it is queued again. What it gives up passes, in the transaction that ends its lease, to a
reservation of the run for which it was preempted (`leases.release`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters import leases
from clusters.models import Cluster, Lease
from jobs import lifecycle
from jobs.models import Attempt, AttemptNode, Run
from jobs.states import RunState
from jobs.task_messages import wake_soon
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.capacity import Demand, FreeNode, counted, words
from trainhub_launch.scheduler.preemption import Candidate, Part, choose_victims

# Runs of this priority and above are never preempted.
SAFE_PRIORITY = 0
STATES = (RunState.PREPARING, RunState.RUNNING)


def preempt(cluster: Cluster, run: Run, demand: Demand, nodes: tuple[FreeNode, ...]) -> str:
    """Preempts the runs whose end lets the whole run start, if there are any, and returns a sentence about
    it; "" if there are none. `nodes`: what they offer now. Nothing happens while nodes can be added to the
    cluster."""
    if any(node.is_coming and node.could_soon(demand) for node in nodes):
        return ""
    now = timezone.now()
    chosen = choose_victims(demand, nodes, _candidates(cluster, run, now))
    if not chosen:
        return ""
    with transaction.atomic():
        # Lock order, the same for every writer: first the runs, then the cluster. A waiting run is nobody's
        # victim, so the order between the two kinds of runs is always this one.
        if not Run.objects.select_for_update().filter(pk=run.pk, state=RunState.QUEUED).exists():
            return ""
        list(Run.objects.select_for_update().filter(pk__in=[item.run for item in chosen]).order_by("pk"))
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        if Lease.objects.filter(holder=run.pk, attempt=0, node__cluster=cluster, released_at=None).exists():
            # Another worker has preempted runs for it since this one read the queue: one set is enough.
            return pending_sentence(run)
        still = {item.run for item in _candidates(cluster, run, now)}
        if not still.issuperset(item.run for item in chosen):
            return ""
        victims = list(Run.objects.filter(pk__in=[item.run for item in chosen]).order_by("pk"))
        attempts = [(item.pk, item.attempt) for item in victims]
        leases.reserve(run.pk, f"run {run.number}", run.workspace, attempts)
        for victim in victims:
            _stop(victim, run)
    return _sentence(run, victims)


def pending_sentence(run: Run) -> str:
    """Returns the sentence for a run for which others are being preempted, or "" if none is."""
    holders = leases.promised_by(run.pk)
    return _sentence(run, Run.objects.filter(pk__in=holders).order_by("pk")) if holders else ""


def _candidates(cluster: Cluster, run: Run, now: datetime) -> list[Candidate]:
    """Returns the runs that may be preempted for `run`: strictly lower in priority, below 0, and running for
    the least time that a run is left alone. Two queries."""
    highest = min(run.priority, SAFE_PRIORITY)
    runs = Run.objects.filter(priority__lt=highest, state__in=STATES).exclude(pk=run.pk)
    attempts = dict(runs.values_list("pk", "attempt"))
    if not attempts:
        return []
    earliest = now - timedelta(minutes=settings.PREEMPT_AFTER_MINUTES)
    leases_by_run: dict[str, list[Lease]] = defaultdict(list)
    in_cluster = Lease.objects.filter(released_at=None, node__cluster=cluster, holder__in=attempts)
    for lease in in_cluster.select_related("node"):
        leases_by_run[lease.holder].append(lease)
    return [
        Candidate(
            holder,
            lost=sum(
                fair_share.weight(len(lease.gpus), lease.slots) * (now - lease.created_at).total_seconds()
                for lease in parts
            ),
            parts={
                lease.node.name: Part(len(lease.gpus), lease.slots, lease.memory_bytes, lease.cpus)
                for lease in parts
            },
        )
        for holder, parts in leases_by_run.items()
        if all(
            lease.attempt == attempts[holder] and not lease.promised_to and lease.created_at <= earliest
            for lease in parts
        )
    ]


def _stop(victim: Run, run: Run) -> None:
    """Marks the attempt as preempted and wakes its nodes, which then stop it."""
    who = f"run {run.number}" if victim.workspace_id == run.workspace_id else "a run of another workspace"
    Attempt.objects.filter(run=victim, number=victim.attempt).update(preempted_by=who)
    grace_s = victim.spec["limits"]["grace_s"]
    message = f"{who.capitalize()} of higher priority preempts it; it has {grace_s} s to save its work."
    lifecycle.record_event(victim.pk, message, attempt=victim.attempt)
    parts = AttemptNode.objects.filter(attempt__run=victim, attempt__number=victim.attempt)
    for part in parts.select_related("node"):
        wake_soon(part.node, victim.pk, victim.attempt)


def _sentence(run: Run, victims: Iterable[Run]) -> str:
    victims = list(victims)
    own = [f"run {victim.number}" for victim in victims if victim.workspace_id == run.workspace_id]
    others = len(victims) - len(own)
    names = words([*own, f"{counted(others, 'run')} of other workspaces"] if others else own)
    return f"Waiting for the end of {names}, preempted for it."
