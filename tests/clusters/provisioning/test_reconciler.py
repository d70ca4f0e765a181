"""Machines of a provider: made, joined, used, released; and every way in which a provider can let one
down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.join import join
from clusters.enrolment.node_tokens import EnrolmentError, revoke_node
from clusters.models import ClusterEvent, Node, ProvidedMachine
from clusters.provisioning import machines
from tests.clusters.provisioning.builders import (
    FAILS,
    LATER,
    Provider,
    come,
    growing,
    report,
    tend,
    up,
    wanted,
)

pytestmark = pytest.mark.django_db
SOON = timedelta(seconds=15)


def latest_message(kind: str) -> str:
    return "\n".join(event.message for event in ClusterEvent.objects.filter(kind=kind))


def refuse_updates(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    if sql.startswith("UPDATE"):
        raise DatabaseError("the disk is full")
    return execute(sql, *rest)


def released(provider: Provider) -> list[str]:
    return [call["name"] for call in provider.asked("release")]


class TestLife:
    def test_is_asked_for_joins_and_is_up(self, provider: Provider) -> None:
        machine = wanted()
        assert tend(machine) == "joining"
        (question,) = provider.asked("provision")
        assert (question["cluster"], question["name"], question["gpus"]) == ("grown", machine.name, 1)
        assert question["hub_url"].startswith("http")
        node = come(provider, machine)
        assert tend(machine) == "up"
        assert machine.node == node
        assert node.cluster.name == "grown"
        assert "is ready, " in latest_message("grown")

    def test_its_token_lets_nobody_else_in(self, provider: Provider) -> None:
        machine = wanted()
        up(provider, machine)
        with pytest.raises(EnrolmentError, match="used already"):
            join(provider.asked("provision")[0]["join_token"], "", "another")

    def test_is_released_and_its_node_leaves_the_lists(self, provider: Provider) -> None:
        machine = wanted()
        node = up(provider, machine)
        machines.release(machine, "idle", timezone.now())
        assert tend(machine) == "releasing"
        (question,) = provider.asked("release")
        assert (question["id"], question["name"]) == (f"i-{machine.name}", machine.name)
        assert tend(machine, later=SOON) == "gone"
        node.refresh_from_db()
        assert node.revoked_at is not None
        assert node.removed_at is not None
        assert machine.node == node, "its history stays"

    def test_one_that_nobody_asked_the_provider_for_just_goes(self, provider: Provider) -> None:
        machine = wanted()
        machines.release(machine, "not needed any more", timezone.now())
        assert machine.state == "gone"
        assert provider.calls == []

    def test_a_node_that_falls_silent_for_good_is_released(self, provider: Provider) -> None:
        machine = wanted()
        node = up(provider, machine)
        Node.objects.filter(pk=node.pk).update(last_report_at=timezone.now() - timedelta(minutes=5))
        assert tend(machine, later=timedelta(minutes=5)) == "releasing"
        tend(machine)
        assert released(provider) == [machine.name]

    def test_one_whose_node_no_longer_exists_is_released(self, provider: Provider) -> None:
        machine = wanted()
        up(provider, machine).delete()
        assert tend(machine) == "releasing"
        assert "is released: its node no longer exists." in latest_message("shrinks")

    def test_one_that_cannot_be_reconciled_holds_up_no_other(
        self, provider: Provider, caplog: pytest.LogCaptureFixture
    ) -> None:
        odd, machine = wanted(), wanted()
        ProvidedMachine.objects.filter(pk=odd.pk).update(state="of-a-later-hub")
        assert tend(machine) == "joining"
        assert f"Machine {odd.name} could not be reconciled" in caplog.text

    @pytest.mark.django_db(transaction=True)
    def test_a_database_that_fails_is_an_error_of_the_whole_pass(self, provider: Provider) -> None:
        machine = wanted()
        with connection.execute_wrapper(refuse_updates), pytest.raises(DatabaseError):
            tend(machine)
        assert provider.calls == []
        assert tend(machine) == "joining"

    def test_a_node_that_is_revoked_is_released(self, provider: Provider) -> None:
        machine = wanted()
        revoke_node(up(provider, machine))
        assert tend(machine) == "releasing"
        tend(machine)
        assert tend(machine) == "gone"


class TestFails:
    @pytest.fixture(autouse=True)
    def failing(self, provider: Provider) -> None:
        provider.script("provision", FAILS)

    def test_is_tried_again_after_a_growing_pause(self, provider: Provider, settings: Settings) -> None:
        machine = wanted()
        assert tend(machine) == "wanted"
        assert machine.error == "provision exited with code 3: no quota left for ***"
        first = machine.try_again_at
        assert first is not None
        tend(machine)
        assert len(provider.calls) == 1, "not before its time"
        tend(machine, at=first)
        assert len(provider.calls) == 2
        assert machine.try_again_at is not None
        assert machines.retry_delay_s(2) > machines.retry_delay_s(1)

    def test_in_the_end_it_is_given_up_and_released_whatever_was_made(self, provider: Provider) -> None:
        machine = wanted()
        for _ in range(3):
            tend(machine, later=LATER)
        assert machine.state == "releasing"
        tend(machine)
        assert released(provider) == [machine.name]
        assert tend(machine, later=SOON) == "failed"
        assert "no quota left" in latest_message("trouble")
        assert len(provider.asked("provision")) == 3

    def test_the_next_machine_is_asked_for_only_after_a_pause(self, provider: Provider) -> None:
        machine = wanted()
        assert machines.next_growth_at(growing()) is None
        for _ in range(4):
            tend(machine, later=LATER)
        assert tend(machine, later=LATER) == "failed"
        again = machines.next_growth_at(growing())
        assert again is not None
        assert again > machine.changed_at

    def test_it_heals_by_itself(self, provider: Provider) -> None:
        machine = wanted()
        tend(machine)
        provider.script("provision", 'print(json.dumps({"id": "x"}))')
        assert tend(machine, later=LATER) == "joining"

    def test_a_provider_that_is_not_there_is_an_error_like_any_other(self, provider: Provider) -> None:
        machine = wanted(growing(provider="nowhere"))
        assert tend(machine) == "wanted"
        assert "no provider 'nowhere'" in machine.error


class TestHangs:
    def test_is_ended_and_tried_again(self, provider: Provider, settings: Settings) -> None:
        settings.PROVIDER_TIMEOUT = 1.0
        provider.script("provision", "import time; time.sleep(600)")
        machine = wanted()
        assert tend(machine) == "wanted"
        assert "did not answer in time" in machine.error


class TestGarbage:
    @pytest.mark.parametrize("said", ["{}", '{"id": 7}', '{"id": ""}', '["id"]', "ok", '{"id": "a\\u0007b"}'])
    def test_is_no_machine(self, provider: Provider, said: str) -> None:
        provider.script("provision", f"print({said!r})")
        machine = wanted()
        assert tend(machine) == "wanted"
        assert "JSON" in machine.error or "must answer" in machine.error


class TestLies:
    def test_says_it_is_made_and_no_node_joins(self, provider: Provider, settings: Settings) -> None:
        machine = wanted()
        tend(machine)
        assert tend(machine, later=timedelta(seconds=settings.PROVIDER_JOIN_TIMEOUT + 1)) == "releasing"
        tend(machine)
        assert released(provider) == [machine.name]
        assert tend(machine, later=SOON) == "wanted", "tried once more"
        assert "no node joined" in latest_message("trouble")

    def test_a_bounded_number_of_times(self, provider: Provider, settings: Settings) -> None:
        settings.PROVIDER_TRIES = 2
        machine = wanted()
        for step in range(12):
            tend(machine, later=LATER * (step + 1))
        assert machine.state == "failed"
        assert len(provider.asked("provision")) == len(released(provider)) == 2

    def test_a_machine_that_comes_too_late_is_not_let_in(
        self, provider: Provider, settings: Settings
    ) -> None:
        machine = wanted()
        tend(machine)
        ProvidedMachine.objects.update(changed_at=timezone.now() - LATER)
        tend(machine)
        with pytest.raises(EnrolmentError, match="has expired"):
            come(provider, machine)

    @pytest.mark.parametrize(
        ("size", "shortage"),
        [
            ({"node_gpus": 8}, "has 4 GPUs, but nodes of this cluster must have 8"),
            ({"node_slots": 8}, "has 6 process slots, but nodes of this cluster must have 8"),
        ],
    )
    def test_a_smaller_machine_than_was_asked_for_is_released(
        self, provider: Provider, size: dict[str, Any], shortage: str
    ) -> None:
        machine = wanted(growing(**size))
        tend(machine)
        node = come(provider, machine, gpus=4, slots=6)
        assert tend(machine) == "joining", "its driver may need a while"
        report(node, 4, at=timezone.now() + timedelta(seconds=61), slots=6)
        assert tend(machine, later=timedelta(seconds=61)) == "releasing"
        assert shortage in latest_message("trouble")
        tend(machine)
        tend(machine, later=SOON)
        node.refresh_from_db()
        assert node.removed_at is not None

    def test_says_it_is_released_and_the_node_still_reports(self, provider: Provider) -> None:
        machine = wanted()
        node = up(provider, machine)
        machines.release(machine, "idle", timezone.now())
        tend(machine)
        report(node, at=timezone.now() + SOON)
        assert tend(machine, later=SOON) == "releasing"
        assert "still reports" in latest_message("trouble")
        node.refresh_from_db()
        assert node.revoked_at is not None
        tend(machine)
        assert tend(machine) == "gone"
        assert released(provider) == [machine.name] * 2, "it is asked again"


class TestRelease:
    def test_that_fails_is_asked_again_without_end(self, provider: Provider) -> None:
        machine = wanted()
        up(provider, machine)
        machines.release(machine, "idle", timezone.now())
        provider.script("release", "sys.exit(1)")
        for _ in range(9):
            assert tend(machine, later=LATER) == "releasing"
        assert len(released(provider)) == 9
        assert "could not be released (try 9)" in latest_message("trouble")
        provider.script("release", "print('{}')")
        tend(machine, later=LATER)
        assert tend(machine, later=SOON) == "gone"

    def test_is_not_asked_for_twice_at_the_same_time(self, provider: Provider) -> None:
        machine = wanted()
        up(provider, machine)
        machines.release(machine, "idle", timezone.now())
        until = timezone.now() + timedelta(minutes=1)
        ProvidedMachine.objects.update(calling_until=until)
        tend(machine)
        assert released(provider) == []
