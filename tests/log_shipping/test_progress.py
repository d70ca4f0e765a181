"""How far logs are shipped, after failures of the hub's own and for runs of the past."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs.log_shipping import progress, rounds, targets
from jobs.log_shipping.models import LogProgress, LogTarget
from jobs.logs import log_removal, log_store, log_timestamps
from jobs.models import AttemptNode
from tests.jobs import builders
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import LogReceiver
from tests.people import principal_of

pytestmark = pytest.mark.django_db


class TestPosition:
    def test_a_worker_that_dies_after_sending_repeats_one_batch(
        self, shipping: Shipping, receiver: LogReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: object) -> None:
            raise SystemExit

        shipping.say("one\n")
        shipping.ship()
        with monkeypatch.context() as patch:
            patch.setattr(progress, "settle", die)
            shipping.say("two\n")
            with pytest.raises(SystemExit):
                shipping.ship()
        shipping.say("three\n")
        shipping.ship()
        assert receiver.texts() == ["one", "two", "two", "three"]
        assert abs(receiver.entries[1].time_ns - receiver.entries[2].time_ns) < 1_000_000_000

    def test_two_workers_at_once_record_a_line_once(
        self, shipping: Shipping, receiver: LogReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle = progress.settle
        others: list[int] = []

        def overtaken(*args: Any) -> None:
            if not others:
                others.append(1)
                rounds.ship_target(shipping.target)
            settle(*args)

        monkeypatch.setattr(progress, "settle", overtaken)
        shipping.say("one\n")
        target = shipping.ship()
        assert target.lines == 1
        shipping.say("two\n")
        assert shipping.ship().lines == 2

    def test_parts_of_a_log_that_a_node_sends_again_are_shipped_once(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("one\ntwo\n")
        shipping.ship()
        shipping.played.log(shipping.run, "70_driver_log.txt", 0, b"one\ntwo\nthree\n")
        shipping.ship()
        assert receiver.texts() == ["one", "two", "three"]

    def test_bytes_of_a_node_that_was_away_are_shipped_after_the_end(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("one\n")
        shipping.end()
        AttemptNode.objects.update(settled_at=None)
        shipping.ship()
        assert not LogProgress.objects.get().is_over
        log_store.append(shipping.run.pk, 1, "70_driver_log.txt", 4, b"late")
        AttemptNode.objects.update(settled_at=timezone.now())
        shipping.ship()
        assert receiver.texts() == ["one", "late"]
        assert LogProgress.objects.get().is_over

    def test_a_purged_run_is_no_harm(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.say("one\n")
        log_removal.remove_run(shipping.run.pk)
        assert shipping.ship().failures == 0


class TestSince:
    def test_runs_that_began_before_are_not_shipped(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.say("old\n")
        LogTarget.objects.all().delete()
        shipping.ship()
        assert receiver.texts() == []
        targets.start_from(shipping.target, timezone.now() - timedelta(days=1))
        shipping.ship()
        assert receiver.texts() == ["old"]

    def test_what_waits_can_be_skipped(self, shipping: Shipping, receiver: LogReceiver) -> None:
        receiver.answers = [(503, {}, b"")]
        shipping.say("old\n")
        shipping.ship()
        targets.start_from(shipping.target, timezone.now())
        shipping.ship()
        assert receiver.texts() == []

    def test_settings_that_name_nothing_ship_nothing(
        self, shipping: Shipping, receiver: LogReceiver, settings: Any
    ) -> None:
        settings.LOG_DESTINATION = None
        shipping.say("one\n")
        shipping.ship()
        assert receiver.requests == 0
        shipping.kind("otlp")
        shipping.ship()
        assert receiver.texts() == ["one"]


def test_a_backlog_of_long_and_short_runs_stays_within_lokis_hour(
    shipping: Shipping, receiver: LogReceiver
) -> None:
    shipping.kind("loki")
    name, day_ms = "70_driver_log.txt", 24 * 3_600_000
    start_ms = int(time.time() * 1000) - day_ms
    other = builders.launched(_submitter(shipping))
    shipping.played.claim(other)
    for run, step_ms in ((shipping.run, 60_000), (other, 1_000)):
        end = 0
        for number in range(400):
            data = f"{number}\n".encode()
            log_store.append(run.pk, 1, name, end, data)
            log_timestamps.record_arrival(
                (run.pk, 1, name), end, end + len(data), start_ms + number * step_ms
            )
            end += len(data)
    log_timestamps.flush_attempt(shipping.run.pk, 1)
    log_timestamps.flush_attempt(other.pk, 1)
    target = shipping.ship()
    assert receiver.refusals == []
    assert target.lines == 800


def _submitter(shipping: Shipping) -> Any:
    assert shipping.run.created_by is not None
    return principal_of(shipping.run.created_by)
