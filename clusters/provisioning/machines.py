"""The only writer of a provided machine's state. Each change must be an allowed transition and must start
from the state that the caller has read."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from clusters.models import Cluster, Node, ProvidedMachine
from clusters.provisioning import cluster_journal
from clusters.provisioning.states import FINISHED, TRANSITIONS, MachineState
from live.publish import publish_on_commit
from live.topics import node_topic

MAX_RETRY_DELAY_S = 600.0
# With a dash and six hexadecimal digits the name fits into the 50 characters of `Node.name`.
MAX_NAME_PREFIX = 42


def advance(machine: ProvidedMachine, to: MachineState, now: datetime, **fields: Any) -> bool:
    """Moves the machine to a state and writes `fields`. Returns False, changing nothing, if the transition is
    not allowed or the row is no longer as the caller has read it. `to` may be the present state."""
    before = MachineState(machine.state)
    if to is not before and to not in TRANSITIONS[before]:
        return False
    if to is not before:
        fields = {"changed_at": now, "calling_until": None, **fields}
    rows = ProvidedMachine.objects.filter(pk=machine.pk, state=before, calling_until=machine.calling_until)
    # Compare and set: of two workers that have read the same row, one writes and the other one changes
    # nothing.
    if not rows.update(state=to, **fields):
        return False
    for name, value in {"state": to.value, **fields}.items():
        setattr(machine, name, value)
    return True


def active(cluster: Cluster) -> list[ProvidedMachine]:
    """Returns the machines that were requested and are not gone, the oldest first."""
    machines = ProvidedMachine.objects.filter(cluster=cluster).exclude(state__in=FINISHED)
    return list(machines.select_related("node").order_by("pk"))


@transaction.atomic
def request(cluster: Cluster, number: int, reason: str, now: datetime) -> None:
    """Requests more machines; the reconciler calls the provider later, outside of this transaction."""
    for _ in range(number):
        ProvidedMachine.objects.create(
            cluster=cluster,
            name=_free_name(cluster),
            state=MachineState.REQUESTED,
            asked_at=now,
            changed_at=now,
        )
    cluster_journal.record_event(
        cluster, "grows", f"{number} more node{'' if number == 1 else 's'} requested: {reason}."
    )


@transaction.atomic
def release(machine: ProvidedMachine, reason: str, now: datetime, actor: str = "hub") -> bool:
    """Requests the release of a machine, whose node is drained at once. Returns False if it is being released
    already or the provider is just creating it.

    Lock the cluster's row first if no run may be placed on the node in between."""
    if machine.state not in (MachineState.REQUESTED, MachineState.JOINING, MachineState.UP):
        return False
    # The join token is created before the provider is called. With a token an earlier call may have created
    # the machine even though it was interrupted.
    was_never_requested = machine.state == MachineState.REQUESTED and machine.token_id is None
    to = MachineState.RELEASED if was_never_requested else MachineState.RELEASING
    # The failures are reset, so that the machine is not created again after its release.
    if not advance(machine, to, now, tries=0, failures=0, try_again_at=None, released_at=None, error=""):
        return False
    cluster_journal.record_event(machine.cluster, "shrinks", f"{machine.name} is released: {reason}.", actor)
    if machine.node_id is not None:
        Node.objects.filter(pk=machine.node_id, drained_at=None).update(drained_at=now)
        publish_on_commit(node_topic(machine.node_id), {"type": "node.changed", "node": machine.name})
    return True


def retry_delay_s(tries: int) -> float:
    """Returns the seconds to wait before the next attempt after this number of failed ones."""
    return float(min(MAX_RETRY_DELAY_S, settings.PROVIDER_PAUSE * 2.0 ** max(0, min(tries, 30) - 1)))


def next_growth_at(cluster: Cluster) -> datetime | None:
    """Returns when a provider whose last machines have all failed may be called again; None = now."""
    last_success = cluster.machines.filter(node__isnull=False, failures=0).aggregate(at=Max("asked_at"))["at"]
    failed = cluster.machines.filter(state=MachineState.FAILED)
    if last_success is not None:
        failed = failed.filter(changed_at__gt=last_success)
    last = failed.order_by("-changed_at").first()
    if last is None:
        return None
    seconds: float = retry_delay_s(settings.PROVIDER_TRIES + failed.count())
    return last.changed_at + timedelta(seconds=seconds)


def _free_name(cluster: Cluster) -> str:
    while True:
        name = f"{cluster.name[:MAX_NAME_PREFIX]}-{secrets.token_hex(3)}"
        if (
            not ProvidedMachine.objects.filter(name=name).exists()
            and not Node.objects.filter(name=name).exists()
        ):
            return name
