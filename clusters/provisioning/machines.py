"""The only writer of a provided machine's state: guarded by the table of transitions and by what the caller
has seen."""

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

LONGEST_PAUSE_S = 600.0
LONGEST_NAME = 42


def advance(machine: ProvidedMachine, to: MachineState, now: datetime, **fields: Any) -> bool:
    """Move the machine and write `fields`; False where it is no longer as the caller has read it. A state may
    stay as it is."""
    before = MachineState(machine.state)
    if to is not before and to not in TRANSITIONS[before]:
        return False
    if to is not before:
        fields = {"changed_at": now, "calling_until": None, **fields}
    rows = ProvidedMachine.objects.filter(pk=machine.pk, state=before, calling_until=machine.calling_until)
    if not rows.update(state=to, **fields):
        return False
    for name, value in {"state": to.value, **fields}.items():
        setattr(machine, name, value)
    return True


def active(cluster: Cluster) -> list[ProvidedMachine]:
    """All that were asked for and are not gone, the oldest first."""
    found = ProvidedMachine.objects.filter(cluster=cluster).exclude(state__in=FINISHED)
    return list(found.select_related("node").order_by("pk"))


@transaction.atomic
def request(cluster: Cluster, number: int, why: str, now: datetime) -> None:
    """Ask for more machines; the provider is called soon, outside of this transaction."""
    for _ in range(number):
        ProvidedMachine.objects.create(
            cluster=cluster, name=_free_name(cluster), state=MachineState.WANTED, asked_at=now, changed_at=now
        )
    cluster_journal.add(cluster, "grows", f"{number} more node{'' if number == 1 else 's'} asked for: {why}.")


@transaction.atomic
def release(machine: ProvidedMachine, why: str, now: datetime, actor: str = "hub") -> bool:
    """Have a machine released; False where it leaves already, or where the provider is just being asked to
    make it.

    Call with the cluster's row locked, where nothing may be placed there in between. Its node takes nothing
    from now on."""
    if machine.state not in (MachineState.WANTED, MachineState.JOINING, MachineState.UP):
        return False
    # Its join token is made before the provider is asked; an earlier call may have been cut off and yet have
    # worked.
    never_asked = machine.state == MachineState.WANTED and machine.token_id is None
    to = MachineState.GONE if never_asked else MachineState.RELEASING
    # Without failures: it was let go, so it is not to come again.
    if not advance(machine, to, now, tries=0, failures=0, try_again_at=None, released_at=None, error=""):
        return False
    cluster_journal.add(machine.cluster, "shrinks", f"{machine.name} is released: {why}.", actor)
    if machine.node_id is not None:
        Node.objects.filter(pk=machine.node_id, drained_at=None).update(drained_at=now)
        publish_on_commit(node_topic(machine.node_id), {"type": "node.changed", "node": machine.name})
    return True


def retry_delay_s(tries: int) -> float:
    """Before something that failed so often is tried again."""
    return float(min(LONGEST_PAUSE_S, settings.PROVIDER_PAUSE * 2.0 ** max(0, min(tries, 30) - 1)))


def next_growth_at(cluster: Cluster) -> datetime | None:
    """Until when nothing more is asked of a provider whose last machines have all failed; None = it may be
    asked."""
    worked = cluster.machines.filter(node__isnull=False, failures=0).aggregate(at=Max("asked_at"))["at"]
    failed = cluster.machines.filter(state=MachineState.FAILED)
    if worked is not None:
        failed = failed.filter(changed_at__gt=worked)
    last = failed.order_by("-changed_at").first()
    if last is None:
        return None
    seconds: float = retry_delay_s(settings.PROVIDER_TRIES + failed.count())
    return last.changed_at + timedelta(seconds=seconds)


def _free_name(cluster: Cluster) -> str:
    while True:
        name = f"{cluster.name[:LONGEST_NAME]}-{secrets.token_hex(3)}"
        if (
            not ProvidedMachine.objects.filter(name=name).exists()
            and not Node.objects.filter(name=name).exists()
        ):
            return name
