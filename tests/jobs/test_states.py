from __future__ import annotations

from itertools import product

import pytest

from jobs import lifecycle
from jobs.models import Experiment, Run
from jobs.states import FINAL, SENTENCES, TRANSITIONS, Reason, RunState
from tests.jobs.builders import queued
from workspaces.access import Principal

FACTS = {
    "rank": 1,
    "code": 3,
    "node": "alpha",
    "signal": "SIGSEGV",
    "who": "carl",
    "seconds": 60,
    "detail": "no space left",
}


class TestTransitions:
    @pytest.mark.parametrize(("start", "to"), list(product(RunState, RunState)))
    def test_every_pair_of_states_is_allowed_or_refused_by_the_table(
        self, start: RunState, to: RunState, who: Principal
    ) -> None:
        run = _run_in(start, who)
        assert lifecycle.advance(run.pk, to) is (to in TRANSITIONS[start])
        run.refresh_from_db()
        assert run.state == (to if to in TRANSITIONS[start] else start)

    def test_nothing_leads_out_of_a_final_state(self) -> None:
        assert all(not TRANSITIONS[state] for state in FINAL)

    def test_every_state_can_be_left_or_is_final(self) -> None:
        assert all(TRANSITIONS[state] or state in FINAL for state in RunState)


class TestReasons:
    @pytest.mark.parametrize("reason", [reason for reason in Reason if reason])
    def test_each_has_a_sentence_and_a_final_state(self, reason: Reason) -> None:
        assert reason.sentence(**FACTS).endswith((".", "no space left"))
        assert "{" not in reason.sentence(**FACTS)
        assert reason.final_state in FINAL

    def test_no_sentence_is_without_its_reason(self) -> None:
        assert set(SENTENCES) == set(Reason)


def _run_in(state: RunState, who: Principal) -> Run:
    experiment, _ = Experiment.objects.get_or_create(workspace=who.workspace, name="default")
    return Run.objects.create(
        number=1,
        workspace=who.workspace,
        experiment=experiment,
        display_name="r",
        spec={"limits": {"retries": 0}},
        state=state,
    )


def test_a_submitted_run_is_queued(who: Principal) -> None:
    assert queued(who).state == RunState.QUEUED
