from __future__ import annotations

import json

import pytest

from clusters.models import Lease
from jobs import lifecycle
from jobs.models import Attempt, Member, Run
from jobs.node_api import claims
from jobs.scheduling import run_actions
from jobs.states import Reason, RunState
from tests.jobs.builders import Played, launched, node, processes, queued, two_nodes
from trainhub_launch.order import NodeOrder
from workspaces.access import Principal
from workspaces.authentication.token_text import digest

pytestmark = pytest.mark.django_db


class TestClaim:
    def test_tells_what_to_run_and_moves_the_run_to_preparing(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who, distribution=processes(2), limits={"timeout_s": 60, "grace_s": 5})
        order = alpha.claim(run)
        run.refresh_from_db()
        assert run.state == RunState.PREPARING
        assert (order.timeout_s, order.grace_s, order.head) == (60, 5, True)
        assert order.snapshot == run.spec["source"]["id"]
        assert [process.env["MASTER_PORT"] for process in order.command.processes] == ["6105", "6105"]

    def test_the_order_survives_the_wire(self, who: Principal) -> None:
        order = Played(node()).claim(launched(who))
        assert NodeOrder.from_json(json.loads(json.dumps(order.to_json()))) == order

    def test_names_the_person_who_submitted_and_nobody_once_they_are_gone(self, who: Principal) -> None:
        alpha, run = Played(node()), launched(who)
        assert alpha.claim(run).person == who.user.username
        Run.objects.filter(pk=run.pk).update(created_by=None)
        assert alpha.claim(run).person == ""

    def test_an_order_of_an_older_hub_says_nothing_about_a_person(self, who: Principal) -> None:
        data = Played(node()).claim(launched(who)).to_json()
        del data["person"]
        assert NodeOrder.from_json(data).person is None

    def test_the_same_nonce_gets_the_same_answer_again(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        assert alpha.claim(run) == alpha.claim(run)

    def test_another_nonce_gets_nothing(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        with pytest.raises(claims.Refused, match="claimed before"):
            alpha.claim(run, "b" * 32)

    def test_the_stored_plan_is_what_runs_and_holds_no_token(self, who: Principal) -> None:
        order = Played(node()).claim(launched(who))
        attempt = Attempt.objects.get()
        token = order.values["launch:token"]
        assert order.masked == (token,)
        assert token not in json.dumps(attempt.plan)
        assert attempt.plan is not None
        assert attempt.plan["commands"][0]["node"] == "alpha"
        assert attempt.token_digest == digest(token)

    def test_members_have_the_names_of_the_final_plan(self, who: Principal) -> None:
        order = Played(node()).claim(launched(who, distribution=processes(2)))
        names = [process.log_name for process in order.command.processes]
        assert list(Member.objects.values_list("log_name", flat=True)) == names


class TestRefused:
    def test_a_node_that_the_attempt_is_not_placed_on(self, who: Principal) -> None:
        node()
        run = launched(who)
        with pytest.raises(claims.Refused, match="not placed"):
            Played(node("beta")).claim(run)

    def test_an_attempt_that_never_was(self, who: Principal) -> None:
        alpha = Played(node())
        with pytest.raises(claims.Refused, match="not placed"):
            alpha.claim(queued(who))

    def test_a_canceled_run(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        run_actions.cancel(run, who.user)
        with pytest.raises(claims.Refused, match="over"):
            alpha.claim(run)

    def test_an_attempt_that_a_later_one_has_replaced(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        lifecycle.advance(
            run.pk, RunState.QUEUED, Reason.NEVER_STARTED, facts={"node": "alpha", "seconds": 1}
        )
        run_actions.launch(run.pk)
        with pytest.raises(claims.Refused, match="over"):
            alpha.claim(run)
        assert alpha.claim(run, attempt=2).attempt == 2

    def test_a_run_that_is_being_canceled_is_named_with_its_state(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        alpha.claim(run)
        run_actions.cancel(run, who.user)
        with pytest.raises(claims.Refused, match="The run is CancelRequested"):
            alpha.claim(run)

    def test_an_attempt_whose_deciding_ranks_have_finished(self, who: Principal) -> None:
        alpha = Played(node())
        run = launched(who)
        Attempt.objects.filter(run=run).update(served=True)
        with pytest.raises(claims.Refused, match="have finished without this node"):
            alpha.claim(run)

    @pytest.mark.parametrize("nonce", ["", "A" * 32, "a" * 31, "../x"])
    def test_a_nonce_that_is_none(self, nonce: str, who: Principal) -> None:
        alpha = node()
        run = launched(who)
        with pytest.raises(claims.Refused, match="nonce"):
            claims.claim(alpha, run.pk, 1, nonce, [])

    def test_an_interpreter_that_is_gone_fails_the_run_in_words(self, who: Principal) -> None:
        alpha = node()
        run = launched(who, environment={"version": "3.11"})
        alpha.interpreters = []
        alpha.save()
        with pytest.raises(claims.Refused, match="no Python"):
            Played(alpha).claim(run)
        run.refresh_from_db()
        assert run.reason == Reason.LAUNCH_FAILED


class TestSeveralNodes:
    def test_both_nodes_are_leased(self, who: Principal) -> None:
        two_nodes(who)
        assert set(Lease.objects.values_list("node__name", flat=True)) == {"alpha", "beta"}

    def test_each_is_told_at_once_what_to_make_ready(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        first, second = alpha.claim(run), beta.claim(run)
        assert (first.go, second.go) == (False, False)
        assert (first.head, second.head) == (True, False)
        assert second.command.node_rank == 1
        assert str(first.command.processes[0].env["MASTER_PORT"]) == "<assigned at launch>"
        assert Attempt.objects.get().plan is None

    def test_a_lost_answer_is_given_again_while_the_node_makes_ready(self, who: Principal) -> None:
        alpha, _, run = two_nodes(who)
        assert alpha.claim(run) == alpha.claim(run)
        alpha.tell(run, "preparing")
        assert not alpha.claim(run).go

    def test_a_node_that_is_ready_waits_for_the_others(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        with pytest.raises(claims.Later, match="not ready yet"):
            alpha.claim(run)
        beta.claim(run)
        with pytest.raises(claims.Later, match="not ready yet"):
            alpha.claim(run)

    def test_once_all_are_ready_each_gets_the_same_final_order_as_often_as_it_asks(
        self, who: Principal
    ) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run, ports=(6107, 6108))
        beta.ready(run)
        first, second = alpha.claim(run), beta.claim(run)
        assert (first.go, second.go) == (True, True)
        assert {order.command.processes[0].env["MASTER_PORT"] for order in (first, second)} == {"6107"}
        assert first == alpha.claim(run)

    def test_another_nonce_gets_nothing_in_either_phase(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        for _ in range(2):
            alpha.ready(run)
            with pytest.raises(claims.Refused, match="claimed before"):
                alpha.claim(run, "c" * 32)
            beta.ready(run)

    def test_the_final_order_is_not_given_to_a_gang_that_has_failed(self, who: Principal) -> None:
        alpha, beta, run = two_nodes(who)
        alpha.ready(run)
        beta.ready(run)
        beta.tell(run, "done", error="No space left.", error_kind="launch")
        with pytest.raises(claims.Refused, match="failed"):
            alpha.claim(run)
