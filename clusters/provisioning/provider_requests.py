"""The two requests to a provider, each between two short writes: no transaction is open during the call."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from clusters.enrolment.join import ca_fingerprint, invite
from clusters.enrolment.join_instructions import reaches_only_this_machine
from clusters.models import ProvidedMachine
from clusters.provisioning import cluster_journal, machines, provider_process, providers
from clusters.provisioning.providers import ProviderError
from clusters.provisioning.states import MachineState
from trainhub_launch.json_types import JsonObject

CONTRACT_VERSION = 1
MAX_ID_LENGTH = 200
# Time beyond its own limit after which a call counts as interrupted.
GRACE_S = 10.0


def provision(pk: int) -> None:
    """Requests the creation of a machine. The answer of a call that counts as interrupted is ignored."""
    machine = _claim(pk, MachineState.REQUESTED, MachineState.PROVISIONING)
    if machine is None:
        return
    invitation, token = invite(machine.cluster.name, machine.name, None, actor="hub")
    # Before the call: if this process dies during it, the row shows that a machine may exist, and it is
    # released.
    ProvidedMachine.objects.filter(pk=machine.pk).update(token=invitation)
    try:
        # The part of the token before the dot is usable by itself, so it is masked as well.
        answer = _call(
            machine, "provision", {**_machine_spec(machine, token)}, secrets=(token, token.partition(".")[0])
        )
        name = _provider_id(answer)
    except ProviderError as error:
        _record_failed_provision(machine, str(error), timezone.now())
        return
    machines.advance(
        machine, MachineState.JOINING, timezone.now(), provider_id=name, error="", try_again_at=None
    )


def release(pk: int) -> None:
    """Requests the release of a machine; repeated until the provider confirms it."""
    machine = _claim(pk, MachineState.RELEASING, MachineState.RELEASING)
    if machine is None:
        return
    try:
        _call(machine, "release", {"id": machine.provider_id}, secrets=())
    except ProviderError as error:
        _record_failed_release(machine, str(error), timezone.now())
        return
    machines.advance(
        machine, MachineState.RELEASING, timezone.now(), calling_until=None, released_at=timezone.now()
    )


def _claim(pk: int, state: MachineState, to: MachineState) -> ProvidedMachine | None:
    """Claims the machine for a call, or returns None. Only one caller holds the claim, for a limited time."""
    now = timezone.now()
    machine = ProvidedMachine.objects.select_related("cluster").filter(pk=pk, state=state).first()
    if (
        machine is None
        # The provider has confirmed the release already; the reconciler only waits for the node's silence.
        or machine.released_at is not None
        or (machine.calling_until is not None and machine.calling_until > now)
    ):
        return None
    until = now + timedelta(seconds=settings.PROVIDER_TIMEOUT + GRACE_S)
    return machine if machines.advance(machine, to, now, calling_until=until) else None


def _call(machine: ProvidedMachine, verb: str, request: JsonObject, secrets: tuple[str, ...]) -> JsonObject:
    provider = providers.find(machine.cluster.provider)
    message = {"contract": CONTRACT_VERSION, "cluster": machine.cluster.name, "name": machine.name, **request}
    return provider_process.call(
        provider.program(verb), message, seconds=settings.PROVIDER_TIMEOUT, secrets=secrets
    )


def _machine_spec(machine: ProvidedMachine, token: str) -> JsonObject:
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


def _provider_id(answer: JsonObject) -> str:
    name = answer.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ID_LENGTH or not name.isprintable():
        raise ProviderError(
            f'provision must answer {{"id": "…"}} with 1 to {MAX_ID_LENGTH} printable characters.'
        )
    return name


@transaction.atomic
def _record_failed_provision(machine: ProvidedMachine, error: str, now: datetime) -> None:
    """Schedules another try with the same name; after the last one the machine is released, because the
    provider may have created it."""
    tries, max_tries = machine.tries + 1, settings.PROVIDER_TRIES
    if tries < max_tries:
        next_try = now + timedelta(seconds=machines.retry_delay_s(tries))
        has_advanced = machines.advance(
            machine, MachineState.REQUESTED, now, error=error, tries=tries, try_again_at=next_try
        )
    else:
        has_advanced = machines.advance(
            machine, MachineState.RELEASING, now, error=error, tries=0, failures=max_tries, try_again_at=None
        )
    if has_advanced:
        cluster_journal.record_event(
            machine.cluster,
            "trouble",
            f"{machine.name} could not be created (try {tries} of {max_tries}): {error}",
        )


@transaction.atomic
def _record_failed_release(machine: ProvidedMachine, error: str, now: datetime) -> None:
    """Schedules another try, without a limit: a machine that is not released keeps costing money."""
    tries = machine.tries + 1
    next_try = now + timedelta(seconds=machines.retry_delay_s(tries))
    fields = {"calling_until": None, "tries": tries, "try_again_at": next_try, "error": error}
    if machines.advance(machine, MachineState.RELEASING, now, **fields):
        cluster_journal.record_event(
            machine.cluster, "trouble", f"{machine.name} could not be released (try {tries}): {error}"
        )
