from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Cluster, Node, StoredSeries, TelemetryChunk, TelemetrySlice
from clusters.telemetry.slice_codec import bucket_of
from jobs import run_curves
from jobs.models import Attempt, AttemptNode, Run
from jobs.retention import run_purge
from jobs.scheduling import run_actions
from tests.api.asking import refused
from tests.clusters.telemetry.builders import block, host_block, stored
from tests.jobs import builders
from tests.jobs.builders import Played, ended, processes
from tests.people import api_client, client_of, make_contributor, make_owner, make_stranger, make_workspace
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")
MINUTES = 20


@pytest.fixture
def node(db: None) -> Node:
    return builders.node(gpus=3)


@pytest.fixture
def run(who: Principal, node: Node) -> Run:
    """Two ranks on two of three GPUs; placed twenty minutes ago, running since nineteen."""
    found = builders.launched(who, distribution=processes(2), resources={"gpus_per_node": 2})
    played = Played(node)
    played.claim(found)
    played.tell(found, "running", builders.alive(0), builders.alive(1))
    begun = timezone.now() - timedelta(minutes=MINUTES)
    Attempt.objects.filter(run=found).update(created_at=begun)
    found.events.filter(to_state="Provisioning").update(at=begun)
    found.events.exclude(to_state="Provisioning").exclude(to_state="Queued").update(
        at=begun + timedelta(minutes=1)
    )
    uuids = [f"GPU-alpha-{index}" for index in range(3)]
    start = bucket_of(begun.timestamp()) - 60
    buckets = [{uuid: {"utilization_pct": (10.0 * place, 99.0)} for place, uuid in enumerate(uuids)}] * (
        MINUTES * 6 + 4
    )
    stored(node, block(start, buckets), host_block(start, [33.0] * len(buckets)))
    return found


def told(api: Client, run: Run, **query: Any) -> Any:
    return api.get(f"/api/v1/runs/{run.pk}/series/", query).json()


def means(node: Any) -> dict[str, float]:
    """UUID -> the one mean that all its points have."""
    found = {}
    for gpu in node["gpus"]:
        values = set(gpu["series"]["utilization_pct"]["mean"]) - {None}
        assert len(values) == 1, gpu
        found[gpu["uuid"]] = values.pop()
    return found


def finish(run: Run, node: Node) -> None:
    Played(node).finish(run, ended(0), ended(1))
    AttemptNode.objects.filter(attempt__run=run).update(settled_at=timezone.now() - timedelta(minutes=2))


class TestLive:
    def test_shows_the_runs_own_gpus_rank_by_rank(self, api: Client, run: Run) -> None:
        answer = told(api, run)
        (node,) = answer["nodes"]
        own = [rank["gpus"] for rank in answer["ranks"]]
        assert [(rank["rank"], rank["node"], len(rank["gpus"])) for rank in answer["ranks"]] == [
            (0, "alpha", 1),
            (1, "alpha", 1),
        ]
        assert means(node) == {"GPU-alpha-0": 0, "GPU-alpha-1": 10}
        assert sorted(uuid for gpus in own for uuid in gpus) == ["GPU-alpha-0", "GPU-alpha-1"]
        assert set(node["host"]["cpu_pct"]["mean"]) <= {33, None}
        assert (answer["attempt"], answer["step_s"], node["step_s"]) == (1, 10, 10)
        assert answer["to"] - answer["from"] in range(MINUTES * 60 - 5, MINUTES * 60 + 60)

    def test_shows_all_gpus_of_its_nodes_where_asked_to(self, api: Client, run: Run) -> None:
        assert means(told(api, run, all_gpus=1)["nodes"][0]) == {
            "GPU-alpha-0": 0,
            "GPU-alpha-1": 10,
            "GPU-alpha-2": 20,
        }

    def test_but_not_those_of_a_cluster_that_the_workspace_may_use_no_more(
        self, api: Client, run: Run
    ) -> None:
        Cluster.objects.get().workspaces.add(make_workspace("others"))
        assert set(means(told(api, run, all_gpus=1)["nodes"][0])) == {"GPU-alpha-0", "GPU-alpha-1"}

    def test_names_the_phases_within_the_attempt(self, api: Client, run: Run) -> None:
        answer = told(api, run)
        phases = answer["phases"]
        assert phases[0]["name"] == "Provisioning"
        assert phases[-1]["name"] == "Running"
        assert int(phases[0]["from"]) == answer["from"]
        assert all(one["to"] == two["from"] for one, two in itertools.pairwise(phases))

    def test_a_run_that_waits_has_no_curves_yet(self, api: Client, who: Principal) -> None:
        answer = told(api, builders.queued(who))
        assert (answer["attempt"], answer["nodes"], answer["ranks"]) == (0, [], [])

    def test_as_csv(self, api: Client, run: Run) -> None:
        answer = api.get(f"/api/v1/runs/{run.pk}/series/", {"as": "csv", "points": "5"})
        assert (
            answer.headers["Content-Disposition"]
            == f'attachment; filename="run-{run.number}-attempt-1-series.csv"'
        )
        assert b",alpha,GPU-alpha-1,1," in answer.content

    @pytest.mark.parametrize(
        ("query", "field", "words"),
        [
            ({"attempt": "2"}, "attempt", "between 1 and 1"),
            ({"all_gpus": "yes"}, "all_gpus", "0 or 1"),
            ({"points": "0"}, "points", "from 1 to 2000"),
            ({"gpus": "x"}, "gpus", "known parameters: all_gpus, as, attempt"),
        ],
    )
    def test_refuses_what_it_cannot_read(
        self, api: Client, run: Run, query: dict[str, str], field: str, words: str
    ) -> None:
        refused(api.get(f"/api/v1/runs/{run.pk}/series/", query), 400, field, words)

    def test_is_nobodys_elses(self, api: Client, run: Run) -> None:
        path = f"/api/v1/runs/{run.pk}/series/"
        assert Client().get(path).status_code == 401
        assert client_of(make_stranger()).get(path).status_code == 404


class TestKept:
    def test_its_curves_outlive_what_nodes_tell(self, api: Client, run: Run, node: Node) -> None:
        before = told(api, run, all_gpus=1)["nodes"][0]
        finish(run, node)
        assert run_curves.store_ended_curves() == 1
        TelemetrySlice.objects.all().delete()
        TelemetryChunk.objects.all().delete()
        after = told(api, run, all_gpus=1)["nodes"][0]
        assert means(after) == means(before)
        assert means(told(api, run)["nodes"][0]) == {"GPU-alpha-0": 0, "GPU-alpha-1": 10}
        assert set(after["host"]["cpu_pct"]["mean"]) <= {33, None}
        assert len(told(api, run, points=7)["nodes"][0]["times"]) <= 7

    def test_they_are_kept_once(self, run: Run, node: Node) -> None:
        finish(run, node)
        assert [run_curves.store_ended_curves(), run_curves.store_ended_curves()] == [1, 0]
        assert StoredSeries.objects.filter(holder=run.pk).count() == 4

    def test_also_where_nothing_was_measured(self, run: Run, node: Node, api: Client) -> None:
        TelemetrySlice.objects.all().delete()
        finish(run, node)
        assert [run_curves.store_ended_curves(), run_curves.store_ended_curves()] == [1, 0]
        assert told(api, run)["nodes"][0]["host"] == {}

    def test_the_last_buckets_are_waited_for(self, run: Run, node: Node) -> None:
        finish(run, node)
        AttemptNode.objects.update(settled_at=timezone.now() - timedelta(seconds=20))
        assert run_curves.store_ended_curves() == 0

    def test_of_a_node_that_never_came_back_what_it_told_is_kept(self, run: Run) -> None:
        AttemptNode.objects.update(settled_at=None)
        Attempt.objects.update(ended_at=timezone.now() - timedelta(hours=1))
        assert run_curves.store_ended_curves() == 0
        Attempt.objects.update(
            ended_at=timezone.now() - timedelta(hours=3), created_at=timezone.now() - timedelta(hours=4)
        )
        assert run_curves.store_ended_curves() == 1

    def test_what_lasts_is_kept_with_few_points(self, run: Run, node: Node) -> None:
        Attempt.objects.update(created_at=timezone.now() - timedelta(hours=30))
        finish(run, node)
        run_curves.store_ended_curves()
        assert StoredSeries.objects.filter(subject="").get().step_s == 120

    def test_they_stay_with_a_deleted_run_and_go_when_it_is_purged(self, run: Run, node: Node) -> None:
        finish(run, node)
        run_curves.store_ended_curves()
        run.refresh_from_db()
        run_actions.delete(run, make_owner())
        assert StoredSeries.objects.exists()
        run_purge.purge_now(run, make_owner())
        assert run_purge.purge_due(lambda purged: purged) == 1
        assert not StoredSeries.objects.exists()


def test_a_contributor_of_the_workspace_reads_it_by_its_number(run: Run) -> None:
    assert api_client(make_contributor()).get(f"/api/v1/runs/{run.number}/series/").status_code == 200
