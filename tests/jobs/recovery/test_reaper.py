from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from clusters.models import Hearing, Lease, Node
from clusters.node_reports import hub_uptime
from jobs.logs import log_store
from jobs.models import Draft, Run
from jobs.recovery import node_loss, reaper
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.jobs.builders import launched, node, queued, running
from workspaces.access import Principal

pytestmark = pytest.mark.django_db


def later(seconds: float) -> datetime:
    """A moment in which the hub has listened all the time."""
    now = timezone.now()
    hub_uptime.pulse(now - timedelta(days=1))
    then = now + timedelta(seconds=seconds)
    Hearing.objects.update(since=now - timedelta(days=1), until=then)
    return then


def state_of(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.sentence


def test_launches_what_a_lost_message_left_waiting(who: Principal) -> None:
    run = queued(who)
    node()
    reaper.check_runs()
    assert state_of(run)[0] == RunState.PROVISIONING


class TestNeverStarted:
    def test_a_run_that_no_node_claims_fails_in_the_end(self, who: Principal) -> None:
        node()
        run = launched(who)
        reaper.check_runs(later(30))
        assert state_of(run)[0] == RunState.PROVISIONING
        reaper.check_runs(later(121))
        assert state_of(run) == (RunState.FAILED, "Node alpha did not start the run within 120 s.")
        assert not Lease.objects.filter(released_at=None).exists()

    def test_patience_begins_when_the_hub_listens(self, who: Principal) -> None:
        node()
        run = launched(who)
        then = later(121)
        Hearing.objects.update(since=then - timedelta(seconds=60))
        reaper.check_runs(then)
        assert state_of(run)[0] == RunState.PROVISIONING


class TestSilence:
    def test_is_shown_first_and_only_once(self, who: Principal) -> None:
        _, run = running(who)
        for seconds in (15, 20, 25):
            node_loss.check_silent_nodes(later(seconds))
        assert state_of(run)[0] == RunState.RUNNING
        assert run.events.filter(message__startswith="Node alpha does not report").count() == 1

    def test_then_fails_the_run_and_keeps_its_gpus_reserved(self, who: Principal) -> None:
        _, run = running(who)
        node_loss.check_silent_nodes(later(61))
        state, sentence = state_of(run)
        assert state == RunState.FAILED
        assert sentence.startswith("Node alpha has not reported for 61 s")
        assert Lease.objects.filter(released_at=None).exists()
        assert log_store.is_complete(run.pk, 1, "70_driver_log.txt")

    def test_a_run_with_retries_goes_on_elsewhere(self, who: Principal) -> None:
        _, run = running(who, limits={"retries": 1})
        node_loss.check_silent_nodes(later(61))
        assert state_of(run)[0] == RunState.QUEUED
        Node.objects.update(slots=1)
        node("beta")
        run_actions.launch_queued()
        run.refresh_from_db()
        assert (run.state, run.attempt) == (RunState.PROVISIONING, 2)
        assert Lease.objects.filter(node__name="beta", released_at=None).exists()

    def test_a_hub_that_was_away_itself_counts_nothing(self, who: Principal) -> None:
        _, run = running(who)
        Node.objects.update(last_report_at=timezone.now() - timedelta(hours=1))
        Hearing.objects.all().delete()
        hub_uptime.pulse(timezone.now())
        node_loss.check_silent_nodes()
        assert state_of(run)[0] == RunState.RUNNING


class TestCancel:
    def test_does_not_wait_for_ever_for_a_node_that_is_away(self, who: Principal) -> None:
        _, run = running(who)
        run_actions.cancel(run, who.user)
        reaper.check_runs(later(39))
        assert state_of(run)[0] == RunState.CANCEL_REQUESTED
        reaper.check_runs(later(41))
        assert state_of(run) == (RunState.CANCELED, "Canceled by carl.")
        assert Lease.objects.filter(released_at=None).exists()

    def test_waits_for_a_node_that_answers(self, who: Principal) -> None:
        _, run = running(who)
        run_actions.cancel(run, who.user)
        then = later(41)
        Node.objects.update(last_report_at=then)
        reaper.check_runs(then)
        assert state_of(run)[0] == RunState.CANCEL_REQUESTED


class TestTidy:
    def test_uploads_are_left_to_their_own_sweep(self) -> None:
        folder = Path(settings.DATA_DIR) / "uploads"
        in_parts = folder / "parts" / "forgotten"
        in_parts.mkdir(parents=True, exist_ok=True)
        piece = folder / f"{'a' * 64}.user-1"
        piece.write_bytes(b"x")
        for path in (piece, in_parts):
            os.utime(path, (0, 0))
        reaper.check_runs()
        assert piece.exists()
        assert in_parts.is_dir()

    def test_drafts_go_after_a_month(self, who: Principal) -> None:
        Draft.objects.create(workspace=who.workspace, user=who.user)
        reaper.check_runs(later(29 * 86400))
        assert Draft.objects.exists()
        reaper.check_runs(later(31 * 86400))
        assert not Draft.objects.exists()
