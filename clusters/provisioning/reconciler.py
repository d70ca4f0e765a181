"""What becomes of the machines that providers make: each is looked at every few seconds, and taken one step
further."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from clusters.models import Cluster, Gpu, JoinToken, Node, ProvidedMachine
from clusters.node_reports.heartbeat import status
from clusters.node_reports.hub_uptime import ListeningWindow, listening_window
from clusters.provisioning import cluster_journal, machines, node_admin, provider_pool, provider_requests
from clusters.provisioning.states import FINISHED, MachineState
from clusters.states import NodeStatus
from trainhub_launch.offers import counted

log = logging.getLogger(__name__)
Start = Callable[[str, Callable[[], None]], bool]
_S = MachineState


@dataclass(frozen=True)
class ReconcileContext:
    """`start` has a provider asked, outside of this thread."""

    now: datetime
    span: ListeningWindow
    start: Start


def reconcile(now: datetime | None = None, start: Start = provider_pool.start) -> None:
    """Look at every machine that is not over."""
    look: ReconcileContext | None = None
    for machine in (
        ProvidedMachine.objects.exclude(state__in=FINISHED).select_related("cluster", "node").order_by("pk")
    ):
        # Most hubs have none, and then ask nothing more.
        look = look or _look(now or timezone.now(), start)
        try:
            STEPS[MachineState(machine.state)](machine, look)
        except DatabaseError:
            raise
        except Exception:
            log.exception("Machine %s could not be looked after; the others go on", machine.name)


def _look(now: datetime, start: Start) -> ReconcileContext:
    return ReconcileContext(now, listening_window(now), start)


def _wanted(machine: ProvidedMachine, look: ReconcileContext) -> None:
    if machine.try_again_at is None or machine.try_again_at <= look.now:
        look.start(machine.name, partial(provider_requests.provision, machine.pk))


def _provisioning(machine: ProvidedMachine, look: ReconcileContext) -> None:
    """Whoever asked must have been cut off: nobody knows what the provider has done. It is asked again, by
    the same name."""
    if machine.calling_until is None or machine.calling_until <= look.now:
        machines.advance(
            machine, _S.WANTED, look.now, try_again_at=None, error="The call to its provider was cut off."
        )


def _joining(machine: ProvidedMachine, look: ReconcileContext) -> None:
    now, node = look.now, _node_of(machine)
    if node is not None and status(node, now, look.span) is NodeStatus.READY:
        wrong = _too_small(machine.cluster, node)
        if wrong:
            # A driver may need a while after the boot until it shows its GPUs.
            if (now - node.created_at).total_seconds() >= settings.NODE_LOST_AFTER:
                _in_vain(machine, now, wrong, node=node)
            return
        with transaction.atomic():
            if machines.advance(machine, _S.UP, now, node=node, error="", tries=0, failures=0):
                _end_tokens(machine, now)
                seconds = round((now - machine.asked_at).total_seconds())
                cluster_journal.add(
                    machine.cluster, "grown", f"{machine.name} is there, {seconds} s after it was asked for."
                )
    elif (now - machine.changed_at).total_seconds() >= settings.PROVIDER_JOIN_TIMEOUT:
        said = (
            f"The provider said that {machine.name} is made, and no node joined within "
            f"{settings.PROVIDER_JOIN_TIMEOUT:.0f} s"
        )
        _in_vain(machine, now, said)


def _up(machine: ProvidedMachine, look: ReconcileContext) -> None:
    if machine.node is None:
        why = "its node is not known any more"
    else:
        stands = status(machine.node, look.now, look.span)
        if stands not in (NodeStatus.LOST, NodeStatus.REVOKED):
            return
        why = (
            "its node was revoked"
            if stands is NodeStatus.REVOKED
            else "its node has not been heard from for too long"
        )
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=machine.cluster_id)
        machines.release(machine, why, look.now)


def _releasing(machine: ProvidedMachine, look: ReconcileContext) -> None:
    now = look.now
    if machine.calling_until is not None and machine.calling_until > now:
        return
    if machine.released_at is None:
        if machine.try_again_at is None or machine.try_again_at <= now:
            look.start(machine.name, partial(provider_requests.release, machine.pk))
        return
    node = _node_of(machine)
    if node is None or node.revoked_at is not None:
        _over(machine, now, node)
        return
    # A report may still have been on its way.
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is not None and node.last_report_at > machine.released_at + patience / 2:
        _still_there(machine, now, node)
    elif now >= machine.released_at + patience:
        _over(machine, now, node)


STEPS: Mapping[MachineState, Callable[[ProvidedMachine, ReconcileContext], None]] = {
    _S.WANTED: _wanted,
    _S.PROVISIONING: _provisioning,
    _S.JOINING: _joining,
    _S.UP: _up,
    _S.RELEASING: _releasing,
}


def _node_of(machine: ProvidedMachine) -> Node | None:
    """The node that came of it: the join token is good for this name alone."""
    if machine.node is not None:
        return machine.node
    return Node.objects.select_related("cluster").filter(name=machine.name).first()


def _too_small(cluster: Cluster, node: Node) -> str:
    gpus = Gpu.objects.filter(node=node, present=True, mig=False).count()
    if gpus < cluster.node_gpus:
        return (
            f"{node.name} came with {counted(gpus, 'GPU')}, and nodes of this cluster are to have "
            f"{cluster.node_gpus}"
        )
    if node.slots < cluster.node_slots:
        has = counted(node.slots, "process slot")
        return f"{node.name} came with {has}, and nodes of this cluster are to have {cluster.node_slots}"
    return ""


@transaction.atomic
def _in_vain(machine: ProvidedMachine, now: datetime, why: str, node: Node | None = None) -> None:
    failures = machine.failures + 1
    fields = {} if node is None else {"node": node}
    if machines.advance(
        machine, _S.RELEASING, now, error=f"{why}.", failures=failures, tries=0, try_again_at=None, **fields
    ):
        cluster_journal.add(machine.cluster, "trouble", f"{why}; it is released.")
        _end_tokens(machine, now)


@transaction.atomic
def _still_there(machine: ProvidedMachine, now: datetime, node: Node) -> None:
    """Nobody may go on paying for it, and no run may go there: it is asked for again, and its node not
    listened to."""
    said = f"The provider said that {machine.name} is released, but its node still reports"
    if machines.advance(machine, _S.RELEASING, now, released_at=None, try_again_at=None, error=f"{said}."):
        cluster_journal.add(
            machine.cluster, "trouble", f"{said}; the node is revoked, and the provider asked again."
        )
        node_admin.retire(node, f"{said}.")


@transaction.atomic
def _over(machine: ProvidedMachine, now: datetime, node: Node | None) -> None:
    again = bool(machine.failures) and machine.failures < settings.PROVIDER_TRIES
    to = _S.WANTED if again else _S.FAILED if machine.failures else _S.GONE
    later = now + timedelta(seconds=machines.retry_delay_s(machine.failures)) if again else None
    # A machine of this name may come again; the node of this one stays with it where it was in use.
    fields = {"provider_id": "", "released_at": None, "node": None} if again else {"gone_at": now}
    if not machines.advance(machine, to, now, tries=0, try_again_at=later, **fields):
        return
    _end_tokens(machine, now)
    if node is not None:
        node_admin.retire(node, f"{machine.name} was released by its provider.")
    kind, said = (
        ("trouble", f"{machine.name} was given up: {machine.error}") if to is _S.FAILED else ("shrunk", "")
    )
    if not again:
        cluster_journal.add(machine.cluster, kind, said or f"{machine.name} is gone.")


def _end_tokens(machine: ProvidedMachine, now: datetime) -> None:
    """What was not used may not let in anybody later."""
    JoinToken.objects.filter(name=machine.name, used_at=None, expires_at__gt=now).update(expires_at=now)
