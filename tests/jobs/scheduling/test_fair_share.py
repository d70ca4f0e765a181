"""Fair shares in the hub: the order of waiting runs of several workspaces, the head's claim, and what each
run says."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster, ClusterShare, Lease, Node
from jobs.models import Run
from jobs.queues import queue_order, standings
from jobs.scheduling import run_actions
from jobs.states import RunState
from tests.api.contract import ApiClient
from tests.jobs.builders import launched, node, queued
from tests.people import client_of, make_person, make_workspace, principal_of, token_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


def member(name: str, slug: str) -> Principal:
    return principal_of(make_person(name, Role.CONTRIBUTOR, make_workspace(slug)))


@pytest.fixture
def vision(db: Any) -> Principal:
    return member("vic", "vision")


@pytest.fixture
def speech(db: Any) -> Principal:
    return member("sam", "speech")


def gpus(count: int, nodes: int = 1, timeout_s: int | None = None) -> dict[str, Any]:
    distribution = {"type": "pytorch", "process_count": count * nodes, "node_count": nodes}
    limits = {} if timeout_s is None else {"limits": {"timeout_s": timeout_s}}
    return {"distribution": distribution, "resources": {"gpus_per_node": count}, **limits}


def state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def end(run: Run, who: Principal) -> None:
    """Ends a run that no node has claimed, and places the next."""
    run_actions.cancel(run, who.user)
    run_actions.launch_queued()


def waiting() -> list[Run]:
    order = standings.picture_of(Cluster.objects.get()).order
    return [item.run for item in standings.with_runs(order)]


class TestOrder:
    def test_who_has_used_less_goes_first(self, vision: Principal, speech: Principal) -> None:
        node(gpus=2)
        first = launched(vision, **gpus(2))
        Lease.objects.update(created_at=timezone.now() - timedelta(days=1))
        own, other = queued(vision, **gpus(1)), queued(speech, **gpus(1))
        assert waiting() == [other, own]
        end(first, vision)
        assert [state(own), state(other)] == [RunState.PROVISIONING] * 2

    def test_shares_decide_how_often_each_is_next(self, vision: Principal, speech: Principal) -> None:
        node(gpus=1)
        launched(vision, **gpus(1))
        ClusterShare.objects.create(cluster=Cluster.objects.get(), workspace=vision.workspace, share=3)
        ours = [queued(vision, **gpus(1)) for _ in range(6)]
        theirs = [queued(speech, **gpus(1)) for _ in range(2)]
        Lease.objects.all().delete()
        assert waiting() == [ours[0], theirs[0], *ours[1:4], theirs[1], *ours[4:]]

    def test_people_of_a_workspace_take_turns(self, vision: Principal) -> None:
        node(gpus=1)
        launched(vision, **gpus(1))
        mine = [queued(vision, **gpus(1)) for _ in range(3)]
        late = queued(member("vera", "vision"), **gpus(1))
        assert waiting() == [late, *mine]

    def test_priority_goes_before_any_share(self, vision: Principal, speech: Principal) -> None:
        node(gpus=1)
        launched(vision, **gpus(1))
        low, own = queued(speech, priority=-1, **gpus(1)), queued(vision, **gpus(1))
        assert waiting() == [own, low]

    def test_three_to_one_over_many_runs(self, vision: Principal, speech: Principal) -> None:
        node(gpus=1)
        ClusterShare.objects.create(cluster=Cluster.objects.get(), workspace=vision.workspace, share=3)
        for _ in range(12):
            queued(vision, **gpus(1))
            queued(speech, **gpus(1))
        started = []
        for _ in range(16):
            # However long this takes, the node reports.
            Node.objects.update(last_report_at=timezone.now())
            run_actions.launch_queued()
            run = Run.objects.get(state=RunState.PROVISIONING)
            started.append(run.workspace.slug)
            run_actions.cancel(run, vision.user)
        assert started.count("vision") == 12


class TestHead:
    def test_keeps_its_claim_when_another_workspace_comes_to_be_first(
        self, vision: Principal, speech: Principal
    ) -> None:
        node("alpha", gpus=2)
        node("beta", gpus=2)
        holders = [launched(vision, **gpus(1)), launched(vision, **gpus(2))]
        gang = launched(vision, **gpus(2, nodes=2))
        gang.refresh_from_db()
        assert gang.claimed_at is not None
        Lease.objects.update(created_at=timezone.now() - timedelta(days=1))
        other = launched(speech, **gpus(1))
        assert state(other) == RunState.QUEUED
        assert waiting() == [gang, other]
        end(holders[0], vision)
        assert (state(gang), state(other)) == (RunState.QUEUED, RunState.QUEUED)
        end(holders[1], vision)
        assert (state(gang), state(other)) == (RunState.PROVISIONING, RunState.QUEUED)
        gang.refresh_from_db()
        assert gang.claimed_at is None

    def test_a_higher_priority_ends_the_claim(self, vision: Principal) -> None:
        node(gpus=2)
        launched(vision, **gpus(2))
        head = launched(vision, **gpus(2))
        urgent = launched(principal_of(make_person("olga", Role.OWNER)), priority=1, **gpus(2))
        head.refresh_from_db()
        urgent.refresh_from_db()
        assert head.claimed_at is None
        assert urgent.claimed_at is not None

    def test_lends_its_gpus_to_runs_that_end_before_it_can_start(self, vision: Principal) -> None:
        node(gpus=4)
        launched(vision, **gpus(3, timeout_s=7200))
        head = launched(vision, **gpus(4))
        assert state(launched(vision, **gpus(1))) == RunState.QUEUED
        assert state(launched(vision, **gpus(1, timeout_s=7200))) == RunState.QUEUED
        assert state(launched(vision, **gpus(1, timeout_s=3600))) == RunState.PROVISIONING
        assert state(head) == RunState.QUEUED

    def test_lends_nothing_while_its_start_is_unknown(self, vision: Principal) -> None:
        node(gpus=4)
        launched(vision, **gpus(3))
        launched(vision, **gpus(4))
        assert state(launched(vision, **gpus(1, timeout_s=60))) == RunState.QUEUED


class TestSentences:
    def test_say_the_place_the_use_and_the_share(self, vision: Principal, speech: Principal) -> None:
        node(gpus=1)
        launched(vision, **gpus(1))
        queued(speech, **gpus(1))
        own = launched(vision, **gpus(1))
        sentence = (
            "2nd of 2; of what the workspaces with runs on local have used recently, vision has used 100 %; "
            "its share is 50 %."
        )
        answer = api_client_in(vision).get(f"/api/v1/runs/{own.number}/").json()
        assert answer["queue"] == {"place": 2, "total": 2, "sentence": sentence}
        assert sentence in client_of(vision.user).get(f"/runs/{own.number}/").content.decode()
        queue = client_of(vision.user).get("/clusters/local/queue/").content.decode()
        assert "recently, vision has used 100 %" in queue
        assert "speech" not in queue

    def test_say_nothing_for_a_run_that_does_not_wait(self, vision: Principal) -> None:
        node(gpus=1)
        run = launched(vision, **gpus(1))
        assert api_client_in(vision).get(f"/api/v1/runs/{run.number}/").json()["queue"] is None

    @pytest.mark.parametrize(
        ("number", "text"),
        [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (121, "121st")],
    )
    def test_count_as_people_do(self, number: int, text: str) -> None:
        assert queue_order.ordinal(number) == text


def api_client_in(who: Principal) -> Any:
    return ApiClient(headers={"authorization": f"Bearer {token_of(who.user, who.workspace)}"})


def test_a_thousand_waiting_runs_cost_as_many_queries_as_ten(vision: Principal) -> None:
    node(gpus=1)
    launched(vision, **gpus(1))
    model = queued(vision, **gpus(1))
    run_actions.launch_queued()
    for number in range(1000):
        Run.objects.create(
            number=1000 + number,
            workspace=model.workspace,
            experiment=model.experiment,
            display_name="waits",
            spec=model.spec,
            created_by=model.created_by,
        )
    run_actions.launch_queued()
    before = time.process_time()
    with CaptureQueriesContext(connection) as queries:
        run_actions.launch_queued()
    assert len(queries) <= 30
    assert time.process_time() - before < 5
