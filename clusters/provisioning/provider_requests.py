"""The two questions to a provider, each between two short writes: never is a transaction open while it is
asked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters.enrolment.join import ca_fingerprint, invite
from clusters.enrolment.join_instructions import reaches_only_this_machine
from clusters.models import ProvidedMachine
from clusters.provisioning import cluster_journal, machines, provider_process, providers
from clusters.provisioning.providers import ProviderError
from clusters.provisioning.states import MachineState

CONTRACT = 1
LONGEST_ID = 200
GRACE_S = 10.0
"""What a call takes beyond its own limit before it counts as cut off."""


def provision(pk: int) -> None:
    """Have a wanted machine made. The answer of a call that was given up is not heard."""
    machine = _begin(pk, MachineState.WANTED, MachineState.PROVISIONING)
    if machine is None:
        return
    invitation, token = invite(machine.cluster.name, machine.name, None, actor="hub")
    ProvidedMachine.objects.filter(pk=machine.pk).update(token=invitation)
    try:
        answer = _call(
            machine, "provision", {**_offer(machine, token)}, secrets=(token, token.partition(".")[0])
        )
        name = _id(answer)
    except ProviderError as error:
        _failed(machine, str(error), timezone.now())
        return
    machines.advance(
        machine, MachineState.JOINING, timezone.now(), provider_id=name, error="", try_again_at=None
    )


def release(pk: int) -> None:
    """Have a machine released, until the provider says that it is."""
    machine = _begin(pk, MachineState.RELEASING, MachineState.RELEASING)
    if machine is None:
        return
    try:
        _call(machine, "release", {"id": machine.provider_id}, secrets=())
    except ProviderError as error:
        _not_released(machine, str(error), timezone.now())
        return
    machines.advance(
        machine, MachineState.RELEASING, timezone.now(), calling_until=None, released_at=timezone.now()
    )


def _begin(pk: int, state: MachineState, to: MachineState) -> ProvidedMachine | None:
    """Only one caller gets it, and only until its time is over."""
    now = timezone.now()
    machine = ProvidedMachine.objects.select_related("cluster").filter(pk=pk, state=state).first()
    if (
        machine is None
        or machine.released_at is not None
        or (machine.calling_until is not None and machine.calling_until > now)
    ):
        return None
    until = now + timedelta(seconds=settings.PROVIDER_TIMEOUT + GRACE_S)
    return machine if machines.advance(machine, to, now, calling_until=until) else None


def _call(
    machine: ProvidedMachine, verb: str, question: dict[str, Any], secrets: tuple[str, ...]
) -> dict[str, Any]:
    provider = providers.find(machine.cluster.provider)
    told = {"contract": CONTRACT, "cluster": machine.cluster.name, "name": machine.name, **question}
    return provider_process.call(
        provider.program(verb), told, seconds=settings.PROVIDER_TIMEOUT, secrets=secrets
    )


def _offer(machine: ProvidedMachine, token: str) -> dict[str, Any]:
    cluster = machine.cluster
    return {
        "hub_url": settings.API_URL,
        "join_token": token,
        "ca_fingerprint": ca_fingerprint(),
        "insecure_http": settings.API_URL.startswith("http://") and not reaches_only_this_machine(),
        "gpus": cluster.node_gpus,
        "gpu_model": cluster.node_gpu_model,
        "slots": cluster.node_slots,
        "low_priority": cluster.low_priority,
    }


def _id(answer: dict[str, Any]) -> str:
    name = answer.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID or not name.isprintable():
        raise ProviderError(
            f'provision must answer {{"id": "…"}} with 1 to {LONGEST_ID} printable characters.'
        )
    return name


@transaction.atomic
def _failed(machine: ProvidedMachine, error: str, now: datetime) -> None:
    """Try again by the same name; in the end give up, and have whatever it may have made released."""
    tries, most = machine.tries + 1, settings.PROVIDER_TRIES
    if tries < most:
        later = now + timedelta(seconds=machines.retry_delay_s(tries))
        moved = machines.advance(
            machine, MachineState.WANTED, now, error=error, tries=tries, try_again_at=later
        )
    else:
        moved = machines.advance(
            machine, MachineState.RELEASING, now, error=error, tries=0, failures=most, try_again_at=None
        )
    if moved:
        cluster_journal.add(
            machine.cluster, "trouble", f"{machine.name} could not be made (try {tries} of {most}): {error}"
        )


@transaction.atomic
def _not_released(machine: ProvidedMachine, error: str, now: datetime) -> None:
    """It is asked again without end: what is not released goes on costing."""
    tries = machine.tries + 1
    later = now + timedelta(seconds=machines.retry_delay_s(tries))
    fields = {"calling_until": None, "tries": tries, "try_again_at": later, "error": error}
    if machines.advance(machine, MachineState.RELEASING, now, **fields):
        cluster_journal.add(
            machine.cluster, "trouble", f"{machine.name} could not be released (try {tries}): {error}"
        )
