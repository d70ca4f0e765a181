from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from jobs.logs import log_timestamps
from jobs.models import Run
from tests.jobs.builders import Played, running
from trainhub_launch.report import Ack, LogChunk
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
NAME = "70_driver_log.txt"


def sends(alpha: Played, run: Run, data: bytes, offset: int, *, held: int, at: datetime) -> Ack:
    """A report with bytes, of a node whose log holds `held` bytes by then."""
    key = (run.pk, 1)
    alpha.facts[key] = alpha.facts[key].__class__(**{**vars(alpha.facts[key]), "logs": {NAME: held}})
    return alpha.report(logs=(LogChunk(run.pk, 1, NAME, offset, data),), now=at)


def late(run: Run, offset: int) -> bool:
    return log_timestamps.LogTimeline.load(run.pk, 1, NAME).arrival_at(offset).late


@pytest.fixture
def start() -> datetime:
    return timezone.now() + timedelta(seconds=2)


class TestAfterAnOutage:
    def test_all_that_was_written_meanwhile_is_late_and_what_comes_next_is_not(
        self, who: Principal, start: datetime
    ) -> None:
        alpha, run = running(who)
        sends(alpha, run, b"live\n", 0, held=5, at=start)
        back = start + timedelta(seconds=40)
        sends(alpha, run, b"missed 1\n", 5, held=23, at=back)
        sends(alpha, run, b"missed 2\n", 14, held=23, at=back + timedelta(seconds=0.5))
        sends(alpha, run, b"now\n", 23, held=27, at=back + timedelta(seconds=1))
        assert [late(run, offset) for offset in (0, 5, 14, 23)] == [False, True, True, False]

    def test_a_pause_between_two_reports_is_no_outage(self, who: Principal, start: datetime) -> None:
        alpha, run = running(who)
        sends(alpha, run, b"one\n", 0, held=4, at=start)
        sends(alpha, run, b"two\n", 4, held=8, at=start + timedelta(seconds=2))
        assert not late(run, 4)

    def test_the_first_bytes_of_a_run_are_not_late_because_its_node_was_idle(
        self, who: Principal, start: datetime
    ) -> None:
        alpha, run = running(who)
        alpha.node.last_report_at = start - timedelta(seconds=6)
        sends(alpha, run, b"one\n", 0, held=4, at=start)
        assert not late(run, 0)

    def test_a_hub_that_was_down_knows_it_from_the_node_s_last_report(
        self, who: Principal, start: datetime
    ) -> None:
        alpha, run = running(who)
        sends(alpha, run, b"one\n", 0, held=4, at=start)
        process_caches.clear_all()
        alpha.node.refresh_from_db()
        sends(alpha, run, b"two\n", 4, held=8, at=start + timedelta(seconds=30))
        assert late(run, 4)
        assert log_timestamps.LogTimeline.load(run.pk, 1, NAME).gaps(10_000)[0].is_outage
