from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from jobs.attempts import readiness
from jobs.models import Attempt, AttemptNode
from jobs.recovery import reaper
from jobs.scheduling import run_actions
from jobs.states import MemberState, Reason, RunState
from tests.jobs.builders import Played, alive, two_nodes
from tests.jobs.gangs import heard_at, held, later, members, state_of, told, woken
from workspaces import process_caches
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
OURS = {"python": "3.11.7", "torch": "2.13.0+cpu", "openmpi": "4.1.4"}


class TestStart:
    def test_the_run_prepares_until_ranks_run(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        assert state_of(run)[0] == RunState.PROVISIONING
        alpha.claim(run)
        assert state_of(run)[0] == RunState.PREPARING
        for played in (alpha, beta):
            played.ready(run)
            assert state_of(run)[0] == RunState.PREPARING
        assert members(run) == [MemberState.WAITING] * 2
        alpha.claim(run)
        alpha.tell(run, "running", alive(0))
        assert state_of(run)[0] == RunState.RUNNING

    def test_the_last_one_to_be_ready_wakes_the_others_and_reads_it_in_its_answer(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        assert alpha.report().start == ()
        with django_capture_on_commit_callbacks() as callbacks:
            ack = beta.ready(run)
        assert woken(callbacks) == ["alpha"]
        assert ack.start == ((run.pk, 1),)

    def test_a_node_that_missed_it_is_told_again_until_its_ranks_run(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.ready(run)
        assert [alpha.report().start, alpha.report().start] == [((run.pk, 1),)] * 2
        alpha.claim(run)
        assert alpha.tell(run, "running", alive(0)).start == ()

    def test_the_plan_of_the_ports_that_were_told_is_stored_once(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run, ports=(6106, 6107))
        beta.ready(run)
        before = Attempt.objects.get().plan
        process_caches.clear_all()
        alpha.tell(run, "ready", ports=(7000,))
        assert Attempt.objects.get().plan == before
        assert before is not None
        assert before["ports"] == {"MASTER_PORT": 6106}
        assert (
            "All 2 nodes are ready; their ranks start. MASTER_PORT is 6106: 6105 is in use on alpha."
            in told(run)
        )

    def test_a_head_without_a_free_port_ends_the_attempt(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run, ports=())
        ack = beta.ready(run)
        assert state_of(run)[0] == RunState.FAILED
        assert "no free port" in run.sentence
        assert [order.why for order in ack.stop] == ["orphan"]

    def test_the_journal_says_who_is_waited_for_and_what_for(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        assert "alpha is ready; waiting for beta, which has not claimed its part yet." in told(run)

        alpha, beta, run = two_nodes(who)
        beta.claim(run)
        beta.tell(run, "preparing")
        alpha.ready(run)
        process_caches.clear_all()
        alpha.report()
        assert told(run).count("alpha is ready; waiting for beta, which is preparing its environment.") == 1

    def test_a_node_that_fails_to_prepare_ends_the_one_that_is_ready(
        self, who: Principal, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
    ) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.claim(run)
        with django_capture_on_commit_callbacks() as callbacks:
            beta.tell(run, "done", error="pip found no torch==9.", error_kind="environment")
        assert woken(callbacks) == ["alpha"]
        ack = alpha.report()
        assert ([order.why for order in ack.stop], ack.start) == (["gang"], ())
        alpha.tell(run, "done", stopping="gang")
        assert state_of(run) == (
            RunState.FAILED,
            "The environment could not be built on beta: pip found no torch==9.",
        )
        assert held() == []

    def test_a_part_that_ended_before_the_start_without_a_word_ends_the_attempt_too(
        self, who: Principal
    ) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.claim(run)
        beta.tell(run, "done")
        assert [order.why for order in alpha.report().stop] == ["gang"]

    def test_a_canceled_run_starts_nowhere(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.ready(run)
        run_actions.cancel(run, who.user)
        ack = alpha.report()
        assert (ack.start, [order.why for order in ack.stop]) == ((), ["canceled"])


class TestMismatch:
    @pytest.mark.parametrize(
        ("theirs", "clause"),
        [
            (OURS, ""),
            ({**OURS, "python": "3.11.2"}, ""),
            ({**OURS, "openmpi": "4.0.0"}, ""),
            ({"python": "3.11.7"}, ""),
            ({**OURS, "python": "3.12.1"}, "python is 3.11.7 on alpha and 3.12.1 on beta"),
            ({**OURS, "torch": "2.12.1+cpu"}, "torch is 2.13.0+cpu on alpha and 2.12.1+cpu on beta"),
            ({**OURS, "openmpi": "5.0.11"}, "openmpi is 4.1.4 on alpha and 5.0.11 on beta"),
        ],
    )
    def test_only_what_cannot_work_together_is_one(self, theirs: Mapping[str, str], clause: str) -> None:
        assert readiness.version_mismatch({"alpha": OURS, "beta": theirs}) == clause

    def test_ends_the_attempt_before_any_rank_starts_and_is_not_tried_again(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who, limits={"retries": 2})
        alpha.ready(run, versions={"torch": "2.13.0"})
        ack = beta.ready(run, versions={"torch": "2.12.1"})
        assert state_of(run) == (
            RunState.FAILED,
            "The nodes of the run have different software: torch is 2.13.0 on alpha and 2.12.1 on beta.",
        )
        assert [order.why for order in ack.stop] == ["orphan"]
        assert members(run) == [MemberState.STOPPED] * 2
        for played in (alpha, beta):
            played.tell(run, "done", stopping="orphan")
        assert held() == []


class TestNeverReady:
    def test_names_the_node_and_what_it_was_doing(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.claim(run)
        beta.tell(run, "preparing")
        for seconds in (1790, 1805):
            then = later(seconds)
            heard_at(then, "alpha", "beta")
            reaper.check_runs(then)
            assert (state_of(run)[0] == RunState.FAILED) is (seconds > 1800)
        assert run.sentence == "Node beta was not ready within 1800 s: it is still preparing its environment."
        assert [order.why for order in alpha.report().stop] == ["orphan"]

    def test_counts_from_the_nodes_own_claim(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.claim(run)
        beta.ready(run)
        AttemptNode.objects.filter(node__name="beta").update(claimed_at=timezone.now() - timedelta(hours=1))
        then = later(60)
        heard_at(then, "alpha", "beta")
        reaper.check_runs(then)
        assert state_of(run)[0] == RunState.PREPARING

    def test_one_that_never_asks_is_one_that_never_started(self, who: Principal) -> None:
        alpha, _, run = two_nodes(who)
        alpha.ready(run)
        then = later(125)
        heard_at(then, "alpha", "beta")
        reaper.check_runs(then)
        assert state_of(run) == (RunState.FAILED, "Node beta did not start the run within 120 s.")

    def test_so_is_one_that_is_told_to_start_and_does_not(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        for played in (alpha, beta):
            played.ready(run)
        alpha.claim(run)
        alpha.tell(run, "running", alive(0))
        for seconds in (60, 125):
            then = later(seconds)
            heard_at(then, "alpha", "beta")
            reaper.check_runs(then)
            assert (state_of(run)[0] == RunState.FAILED) is (seconds > 120)
        assert (run.reason, run.facts["node"]) == (Reason.NEVER_STARTED, "beta")

    def test_a_single_node_may_prepare_as_long_as_it_takes(self, who: Principal) -> None:
        alpha, _, run = two_nodes(who, distribution=None)
        played = (
            alpha
            if AttemptNode.objects.get().node.name == "alpha"
            else Played(AttemptNode.objects.get().node)
        )
        played.claim(run)
        played.tell(run, "preparing")
        then = later(5000)
        heard_at(then, "alpha", "beta")
        reaper.check_runs(then)
        assert state_of(run)[0] == RunState.PREPARING
