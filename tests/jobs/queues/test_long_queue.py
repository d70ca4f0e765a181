"""A long queue: what its runs say, what pages and the API tell of it, and how often it is walked through."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.models import Cluster
from jobs.models import Run, RunEvent
from jobs.queues import standings
from jobs.scheduling import hub_queue, queue_placement, run_actions
from jobs.states import RunState
from tests.api.contract import ApiClient
from tests.jobs.builders import launched, node, queued
from tests.people import client_of, token_of
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
ONE_GPU: dict[str, Any] = {"resources": {"gpus_per_node": 1}}


@pytest.fixture
def waiting(who: Principal, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Six runs of one group behind one that has the only GPU, as a long queue."""
    monkeypatch.setattr(standings, "SHORT_QUEUE", 3)
    monkeypatch.setattr(standings, "REUSED_FOR_S", 600)
    monkeypatch.setattr(queue_placement, "SHORT_QUEUE", 3)
    node("alpha", gpus=1)
    launched(who, **ONE_GPU)
    return [queued(who, **ONE_GPU) for _ in range(6)]


def says(run: Run) -> str:
    run.refresh_from_db()
    return run.sentence


class TestSentences:
    def test_name_the_run_in_front_or_how_many_there_are(
        self, waiting: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hub_queue, "MANY", 3)
        queue_placement.place_queued()
        assert says(waiting[0]).startswith("Waiting for 1 node with 1 GPU")
        assert [says(run) for run in waiting[1:]] == [
            f"Waiting behind run {waiting[0].number}.",
            f"Waiting behind run {waiting[1].number}.",
            f"Waiting behind run {waiting[2].number}.",
            *["Waiting behind more than 3 runs."] * 2,
        ]

    def test_are_stored_together_with_an_event_for_each_run(self, waiting: list[Run]) -> None:
        with CaptureQueriesContext(connection) as queries:
            queue_placement.place_queued()
        changes = [query for query in queries if query["sql"].startswith("UPDATE")]
        # The head, its claim, and all others.
        assert len(changes) <= 4
        events = RunEvent.objects.filter(run__in=[run.pk for run in waiting], reason="not_fitting_yet")
        assert set(events.values_list("run", flat=True)) == {run.pk for run in waiting}

    def test_are_left_alone_by_the_walks_that_follow_closely(
        self, waiting: list[Run], who: Principal
    ) -> None:
        queue_placement.place_queued()
        late = queued(who, **ONE_GPU)
        queue_placement.place_queued()
        assert says(late) == ""
        queue_placement._whole_due.clear()
        queue_placement.place_queued()
        assert says(late) == f"Waiting behind run {waiting[-1].number}."

    def test_a_walk_places_what_has_become_free_and_reads_few_runs(
        self, waiting: list[Run], who: Principal
    ) -> None:
        queue_placement.place_queued()
        run_actions.cancel(Run.objects.get(state=RunState.PROVISIONING), who.user)
        with CaptureQueriesContext(connection) as queries:
            queue_placement.place_queued()
        assert Run.objects.get(state=RunState.PROVISIONING) == waiting[0]
        specs = [query["sql"] for query in queries if '"jobs_run"."spec"' in query["sql"]]
        # The one that is placed and the head: to look at them, and with their locks.
        assert len(specs) <= 4


class TestPicture:
    def test_serves_several_requests_and_a_new_run_has_no_place_yet(
        self, waiting: list[Run], who: Principal
    ) -> None:
        api = ApiClient(headers={"authorization": f"Bearer {token_of(who.user, who.workspace)}"})
        place = api.get(f"/api/v1/runs/{waiting[2].number}/").json()["queue"]
        assert (place["place"], place["total"]) == (3, 6)
        late = queued(who, **ONE_GPU)
        standing = api.get(f"/api/v1/runs/{late.number}/").json()["queue"]
        assert (standing["place"], standing["total"]) == (None, 7)
        assert standing["sentence"].startswith(
            "One of about 7 that wait; its place is worked out within 600 s; of what the workspaces"
        )
        assert "One of about 7" in client_of(who.user).get(f"/runs/{late.number}/").content.decode()
        standings._recent.clear()
        assert api.get(f"/api/v1/runs/{late.number}/").json()["queue"]["place"] == 7

    def test_the_page_of_the_queue_leaves_out_what_has_started_since(
        self, waiting: list[Run], who: Principal
    ) -> None:
        assert len(standings.picture_of(Cluster.objects.get()).order) == 6
        run_actions.cancel(waiting[0], who.user)
        page = client_of(who.user).get("/clusters/local/queue/").content.decode()
        assert f"/runs/{waiting[0].number}/" not in page
        assert f"/runs/{waiting[1].number}/" in page


def test_one_pass_runs_and_at_most_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def place(*_: object) -> bool:
        passes.append(1)
        begun.set()
        go_on.wait(10)
        return True

    monkeypatch.setattr(queue_placement, "place_queued", place)
    first = threading.Thread(target=run_actions.launch_queued)
    first.start()
    assert begun.wait(10)
    for _ in range(20):
        run_actions.launch_queued()
    go_on.set()
    first.join(10)
    assert len(passes) == 2
