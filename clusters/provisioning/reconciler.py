"""Reconciles the machines of providers: every few seconds each machine is checked and moved one step on."""

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
from trainhub_launch.scheduler.capacity import counted

log = logging.getLogger(__name__)
Start = Callable[[str, Callable[[], None]], bool]
_S = MachineState


@dataclass(frozen=True)
class ReconcileContext:
    """The values that one pass shares: the time, the listening window, and the function that starts provider
    calls."""

    now: datetime
    span: ListeningWindow
    start: Start


def reconcile(now: datetime | None = None, start: Start = provider_pool.start) -> None:
    """Checks every machine that is not finished."""
    context: ReconcileContext | None = None
    unfinished = ProvidedMachine.objects.exclude(state__in=FINISHED)
    if not unfinished.exists():
        return  # most hubs have no such machines, and this query costs a third of the next one
    for machine in unfinished.select_related("cluster", "node").order_by("pk"):
        # Created lazily: most hubs have no such machines and need no further query.
        context = context or _context(now or timezone.now(), start)
        try:
            STEPS[MachineState(machine.state)](machine, context)
        except DatabaseError:
            # It is not a fault of this machine: the other ones would fail as well.
            raise
        except Exception:
            log.exception("Machine %s could not be reconciled; the others are", machine.name)


def _context(now: datetime, start: Start) -> ReconcileContext:
    return ReconcileContext(now, listening_window(now), start)


def _reconcile_requested(machine: ProvidedMachine, context: ReconcileContext) -> None:
    if machine.try_again_at is None or machine.try_again_at <= context.now:
        context.start(machine.name, partial(provider_requests.provision, machine.pk))


def _reconcile_provisioning(machine: ProvidedMachine, context: ReconcileContext) -> None:
    """Requests the machine again after an interrupted call, with the same name, because the outcome of that
    call is unknown."""
    if machine.calling_until is None or machine.calling_until <= context.now:
        machines.advance(
            machine,
            _S.REQUESTED,
            context.now,
            try_again_at=None,
            error="The call to its provider was interrupted.",
        )


def _reconcile_joining(machine: ProvidedMachine, context: ReconcileContext) -> None:
    now, node = context.now, _node_of(machine)
    # A node of an earlier machine of that name is revoked, so it is never READY here.
    if node is not None and status(node, now, context.span) is NodeStatus.READY:
        shortage = _too_small(machine.cluster, node)
        if shortage:
            # The driver may need some time after the boot until it reports the GPUs.
            if (now - node.created_at).total_seconds() >= settings.NODE_LOST_AFTER:
                _give_up_machine(machine, now, shortage, node=node)
            return
        with transaction.atomic():
            if machines.advance(machine, _S.UP, now, node=node, error="", tries=0, failures=0):
                _expire_tokens(machine, now)
                seconds = round((now - machine.asked_at).total_seconds())
                cluster_journal.record_event(
                    machine.cluster, "grown", f"{machine.name} is ready, {seconds} s after it was requested."
                )
    elif (now - machine.changed_at).total_seconds() >= settings.PROVIDER_JOIN_TIMEOUT:
        reason = (
            f"The provider reported {machine.name} as created, but no node joined within "
            f"{settings.PROVIDER_JOIN_TIMEOUT:.0f} s"
        )
        _give_up_machine(machine, now, reason)


def _reconcile_up(machine: ProvidedMachine, context: ReconcileContext) -> None:
    if machine.node is None:
        reason = "its node no longer exists"
    else:
        node_status = status(machine.node, context.now, context.span)
        if node_status not in (NodeStatus.LOST, NodeStatus.REVOKED):
            return
        reason = (
            "its node was revoked"
            if node_status is NodeStatus.REVOKED
            else "its node has not reported for too long"
        )
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=machine.cluster_id)
        machines.release(machine, reason, context.now)


def _reconcile_releasing(machine: ProvidedMachine, context: ReconcileContext) -> None:
    now = context.now
    if machine.calling_until is not None and machine.calling_until > now:
        return
    if machine.released_at is None:
        if machine.try_again_at is None or machine.try_again_at <= now:
            context.start(machine.name, partial(provider_requests.release, machine.pk))
        return
    node = _node_of(machine)
    if node is None or node.revoked_at is not None:
        _finish(machine, now, node)
        return
    # A report may still have been on its way.
    patience = timedelta(seconds=settings.NODE_UNREACHABLE_AFTER)
    if node.last_report_at is not None and node.last_report_at > machine.released_at + patience / 2:
        _release_again(machine, now, node)
    elif now >= machine.released_at + patience:
        _finish(machine, now, node)


STEPS: Mapping[MachineState, Callable[[ProvidedMachine, ReconcileContext], None]] = {
    _S.REQUESTED: _reconcile_requested,
    _S.PROVISIONING: _reconcile_provisioning,
    _S.JOINING: _reconcile_joining,
    _S.UP: _reconcile_up,
    _S.RELEASING: _reconcile_releasing,
}


def _node_of(machine: ProvidedMachine) -> Node | None:
    """Returns the node of the machine, found by name: its join token is valid for this name only."""
    if machine.node is not None:
        return machine.node
    return Node.objects.select_related("cluster").filter(name=machine.name).first()


def _too_small(cluster: Cluster, node: Node) -> str:
    gpus = Gpu.objects.filter(node=node, present=True, mig=False).count()
    if gpus < cluster.node_gpus:
        return (
            f"{node.name} has {counted(gpus, 'GPU')}, but nodes of this cluster must have {cluster.node_gpus}"
        )
    if node.slots < cluster.node_slots:
        slots_text = counted(node.slots, "process slot")
        return f"{node.name} has {slots_text}, but nodes of this cluster must have {cluster.node_slots}"
    return ""


@transaction.atomic
def _give_up_machine(machine: ProvidedMachine, now: datetime, reason: str, node: Node | None = None) -> None:
    failures = machine.failures + 1
    fields = {} if node is None else {"node": node}
    if machines.advance(
        machine,
        _S.RELEASING,
        now,
        error=f"{reason}.",
        failures=failures,
        tries=0,
        try_again_at=None,
        **fields,
    ):
        cluster_journal.record_event(machine.cluster, "trouble", f"{reason}; it is released.")
        _expire_tokens(machine, now)


@transaction.atomic
def _release_again(machine: ProvidedMachine, now: datetime, node: Node) -> None:
    """Requests the release again and revokes the node, because the machine still runs and costs money."""
    reason = f"The provider reported {machine.name} as released, but its node still reports"
    if machines.advance(machine, _S.RELEASING, now, released_at=None, try_again_at=None, error=f"{reason}."):
        cluster_journal.record_event(
            machine.cluster, "trouble", f"{reason}; the node is revoked, and the release is requested again."
        )
        node_admin.retire(node, f"{reason}.")


@transaction.atomic
def _finish(machine: ProvidedMachine, now: datetime, node: Node | None) -> None:
    is_retried = bool(machine.failures) and machine.failures < settings.PROVIDER_TRIES
    to = _S.REQUESTED if is_retried else _S.FAILED if machine.failures else _S.RELEASED
    next_try = now + timedelta(seconds=machines.retry_delay_s(machine.failures)) if is_retried else None
    # For a retry the row is reset for a new machine of this name; otherwise it keeps its node as history.
    fields = {"provider_id": "", "released_at": None, "node": None} if is_retried else {"gone_at": now}
    if not machines.advance(machine, to, now, tries=0, try_again_at=next_try, **fields):
        return
    _expire_tokens(machine, now)
    if node is not None:
        node_admin.retire(node, f"{machine.name} was released by its provider.")
    kind, message = (
        ("trouble", f"{machine.name} was given up: {machine.error}") if to is _S.FAILED else ("shrunk", "")
    )
    if not is_retried:
        cluster_journal.record_event(machine.cluster, kind, message or f"{machine.name} is gone.")


def _expire_tokens(machine: ProvidedMachine, now: datetime) -> None:
    """Expires unused join tokens of the machine, so that nothing can join with them later."""
    JoinToken.objects.filter(name=machine.name, used_at=None, expires_at__gt=now).update(expires_at=now)
