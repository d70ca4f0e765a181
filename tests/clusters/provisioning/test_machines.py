"""The state of a machine: one guarded writer, interrupted calls, and release during creation."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from django.utils import timezone

from clusters.models import ClusterEvent, Lease, ProvidedMachine
from clusters.provisioning import machines, provider_requests
from clusters.provisioning.states import TRANSITIONS, MachineState
from tests.clusters.builders import workspace
from tests.clusters.provisioning.builders import LATER, Provider, tend, up, wanted

pytestmark = pytest.mark.django_db
SOON = timedelta(seconds=15)


class TestTable:
    @pytest.mark.parametrize(
        ("start", "to"), [pair for pair in product(MachineState, MachineState) if pair[0] is not pair[1]]
    )
    def test_every_move_is_allowed_or_refused_by_the_table(
        self, start: MachineState, to: MachineState
    ) -> None:
        machine = wanted()
        ProvidedMachine.objects.update(state=start)
        machine.refresh_from_db()
        assert machines.advance(machine, to, timezone.now()) is (to in TRANSITIONS[start])

    def test_of_two_who_saw_the_same_one_wins(self) -> None:
        machine = wanted()
        other = ProvidedMachine.objects.get(pk=machine.pk)
        assert machines.advance(machine, MachineState.PROVISIONING, timezone.now())
        assert not machines.advance(other, MachineState.PROVISIONING, timezone.now())


class TestRestart:
    def test_a_call_that_was_cut_off_is_made_again_by_the_same_name(self, provider: Provider) -> None:
        machine = wanted()
        now = timezone.now()
        machines.advance(machine, MachineState.PROVISIONING, now, calling_until=now + timedelta(seconds=30))
        assert tend(machine) == "provisioning", "whoever asked may still be there"
        tend(machine, later=timedelta(seconds=31))
        assert tend(machine) == "joining"
        assert provider.asked("provision")[0]["name"] == machine.name

    def test_the_answer_to_a_call_that_was_given_up_is_not_heard(self, provider: Provider) -> None:
        machine = wanted()
        now = timezone.now()
        machines.advance(machine, MachineState.PROVISIONING, now, calling_until=now)
        late = ProvidedMachine.objects.get(pk=machine.pk)
        tend(machine)
        tend(machine)
        assert not machines.advance(late, MachineState.JOINING, timezone.now(), provider_id="stale")
        machine.refresh_from_db()
        assert machine.provider_id == f"i-{machine.name}"

    def test_one_whose_call_was_cut_off_is_released_when_it_is_let_go(self, provider: Provider) -> None:
        """The call may have worked, and nobody heard the answer."""
        provider.script("provision", "sys.exit(1)")
        machine = wanted()
        tend(machine)
        ProvidedMachine.objects.update(tries=0, error="The call to its provider was cut off.")
        machine.refresh_from_db()
        machines.release(machine, "not needed any more", timezone.now())
        assert machine.state == "releasing"

    def test_one_that_was_let_go_does_not_come_again(self, provider: Provider) -> None:
        machine = wanted()
        tend(machine)
        ProvidedMachine.objects.update(failures=1)
        machine.refresh_from_db()
        machines.release(machine, "not needed any more", timezone.now())
        tend(machine)
        assert tend(machine, later=SOON) == "gone"


class TestBusy:
    def test_a_machine_that_is_asked_for_cannot_be_let_go_meanwhile(self, provider: Provider) -> None:
        machine = wanted()
        machines.advance(
            machine, MachineState.PROVISIONING, timezone.now(), calling_until=timezone.now() + LATER
        )
        assert not machines.release(machine, "idle", timezone.now())

    def test_of_two_who_release_it_one_does(self, provider: Provider) -> None:
        machine = wanted()
        up(provider, machine)
        other = ProvidedMachine.objects.get(pk=machine.pk)
        assert machines.release(machine, "idle", timezone.now())
        assert not machines.release(other, "lost", timezone.now())
        assert ClusterEvent.objects.get(kind="shrinks").message == f"{machine.name} is released: idle."

    def test_its_provider_is_called_once_however_often_the_call_is_started(self, provider: Provider) -> None:
        machine = wanted()
        for _ in range(2):
            provider_requests.provision(machine.pk)
        machine.refresh_from_db()
        machines.release(machine, "idle", timezone.now())
        for _ in range(2):
            provider_requests.release(machine.pk)
        assert [call["verb"] for call in provider.calls] == ["provision", "release"]

    def test_leases_are_not_touched_by_releasing(self, provider: Provider) -> None:
        machine = wanted()
        node = up(provider, machine)
        Lease.objects.create(node=node, holder="r", attempt=1, label="run 1", workspace=workspace(), slots=1)
        machines.release(machine, "lost", timezone.now())
        tend(machine)
        tend(machine, later=SOON)
        assert Lease.objects.filter(released_at=None).exists()
