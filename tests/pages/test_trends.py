"""The curves beside the numbers of the dashboard."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from clusters.models import Lease
from jobs.models import Run
from jobs.states import RunState
from jobs.views.trends import BINS, Trend, trends
from tests.jobs.builders import node, queued
from tests.pages.builders import failed, running, text_of
from tests.people import client_of, make_viewer, make_workspace
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
NOTHING = {"waiting": 0, "running": 0, "gpus": 0, "slots": 0, "failed": 0}
EMPTY = dict.fromkeys(NOTHING)


def drawn(who: Principal, **now: int) -> dict[str, Trend | None]:
    process_caches.clear_all()
    return trends(who.workspace, NOTHING | now)


def past(who: Principal, created: float, started: float | None, ended: float | None, state: RunState) -> Run:
    """A run with these times, in hours before now."""
    run = queued(who)

    def at(hours: float | None) -> datetime | None:
        return None if hours is None else timezone.now() - timedelta(hours=hours)

    Run.objects.filter(pk=run.pk).update(
        created_at=at(created), started_at=at(started), finished_at=at(ended), state=state
    )
    run.refresh_from_db()
    return run


def heights(trend: Trend | None) -> list[float]:
    """Returns the y of each point, from the oldest to now."""
    assert trend is not None
    (path,) = trend.paths
    return [float(point.split()[1].removesuffix("h0.5")) for point in path.replace("h0.5", "").split("L")]


def full(ys: list[float], starts: list[float]) -> list[float]:
    """Returns the starts of the bins with the greatest value."""
    return [start for start, y in zip(starts, ys, strict=False) if y == min(ys)]


class TestLines:
    def test_a_run_waits_until_it_starts_and_runs_until_it_ends(self, who: Principal) -> None:
        past(who, 20, 12, 6, RunState.COMPLETED)
        found = drawn(who)
        waiting, ran = heights(found["waiting"]), heights(found["running"])
        assert len(waiting) == BINS + 1
        # A bin that the run waited in begins so many hours ago.
        starts = [24 - place / 2 for place in range(BINS)]
        assert full(waiting, starts) == [hours for hours in starts if 12 < hours <= 20]
        assert full(ran, starts) == [hours for hours in starts if 6 < hours <= 12]

    def test_a_short_run_counts_for_its_part_of_the_half_hour(self, who: Principal) -> None:
        past(who, 10, 10, 9.9, RunState.COMPLETED)
        trend = drawn(who)["running"]
        assert trend is not None
        assert trend.sentence == "Last 24 hours, means of half hours: 0 to 0.2, now 0"

    def test_the_last_point_is_the_present_number(self, who: Principal) -> None:
        past(who, 20, 12, 6, RunState.COMPLETED)
        trend = drawn(who, running=2)["running"]
        assert trend is not None
        assert trend.sentence == "Last 24 hours, means of half hours: 0 to 1, now 2"
        assert heights(trend)[-1] == min(heights(trend))

    def test_a_run_that_waits_for_its_next_attempt_does_not_run_meanwhile(self, who: Principal) -> None:
        run = past(who, 20, 12, None, RunState.QUEUED)
        Run.objects.filter(pk=run.pk).update(state_since=timezone.now() - timedelta(hours=4))
        found = drawn(who, waiting=1)
        assert heights(found["running"])[-4] == max(heights(found["running"]))
        assert heights(found["waiting"])[-4] == min(heights(found["waiting"]))

    def test_what_ended_before_does_not_count(self, who: Principal) -> None:
        past(who, 40, 30, 25, RunState.COMPLETED)
        assert drawn(who) == EMPTY

    def test_held_gpus_and_slots_count_by_their_leases(self, who: Principal) -> None:
        held = timezone.now() - timedelta(hours=10)
        lease = Lease.objects.create(
            node=node("alpha", gpus=4), holder="f" * 32, attempt=1, label="run 7", gpus=["a", "b"], slots=3
        )
        Lease.objects.filter(pk=lease.pk).update(created_at=held, released_at=held + timedelta(hours=2))
        found = drawn(who)
        assert found["gpus"] is not None
        assert found["gpus"].sentence == "Last 24 hours, means of half hours: 0 to 2, now 0"
        assert found["slots"] is not None
        assert found["slots"].sentence == "Last 24 hours, means of half hours: 0 to 3, now 0"


class TestBars:
    def test_count_failures_by_day_and_end_with_today(self, who: Principal) -> None:
        for days in (1, 1, 3, 9):
            past(who, 24 * days, 24 * days, 24 * days, RunState.FAILED)
        trend = drawn(who, failed=1)["failed"]
        assert trend is not None
        assert trend.sentence == "Failed per day in the last 7 days: 0, 0, 0, 1, 0, 2, today 1"
        assert len(trend.bars) == 7
        assert trend.bars[5][3] == 2 * trend.bars[3][3]


class TestPage:
    def test_shows_them_beside_the_numbers(self, who: Principal) -> None:
        failed(who)
        running(who)
        text = text_of(client_of(make_viewer()), "/")
        assert "<title>Failed per day in the last 7 days: 0, 0, 0, 0, 0, 0, today 1</title>" in text
        assert "now 1</title>" in text

    def test_draws_nothing_where_there_was_nothing(self, who: Principal) -> None:
        assert "th-trend" not in text_of(client_of(make_viewer()), "/")

    def test_of_another_workspace_nothing_is_told(self, who: Principal) -> None:
        past(who, 20, 12, 6, RunState.FAILED)
        assert trends(make_workspace("elsewhere"), NOTHING) == EMPTY

    def test_is_read_with_three_queries_once_a_minute(
        self, who: Principal, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(4):
            past(who, 20, 12, 6, RunState.FAILED)
        process_caches.clear_all()
        with django_assert_num_queries(3):
            trends(who.workspace, NOTHING)
        with django_assert_num_queries(0):
            trends(who.workspace, NOTHING)
