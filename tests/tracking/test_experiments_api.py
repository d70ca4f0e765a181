"""The list of a workspace's experiments, through the API."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Experiment, Run
from jobs.states import RunState
from tests.api.asking import refused
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_person,
    make_stranger,
    make_viewer,
    make_workspace,
)
from tests.tracking.builders import logged_run, make_experiment
from workspaces.states import Role

EXPERIMENTS = "/api/v1/experiments/"
MORNING = datetime(2026, 11, 28, 8, tzinfo=UTC)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]


@pytest.fixture
def vera(db: None) -> Client:
    return api_client(make_viewer())


def experiment(name: str, hour: int) -> Experiment:
    made = make_experiment(name)
    Experiment.objects.filter(pk=made.pk).update(created_at=MORNING + timedelta(hours=hour))
    return made


def run_at(hour: int, name: str, state: RunState = RunState.COMPLETED, **fields: Any) -> Run:
    run = logged_run(experiment=name, state=state, **fields)
    Run.objects.filter(pk=run.pk).update(created_at=MORNING + timedelta(hours=hour))
    return run


def names(client: Client, query: str = "") -> list[str]:
    return [item["name"] for item in client.get(f"{EXPERIMENTS}{query}").json()["results"]]


class TestList:
    def test_has_the_runs_of_each_experiment_and_when_the_last_was_submitted(self, vera: Client) -> None:
        birds = experiment("birds", 0)
        run_at(1, "birds")
        run_at(2, "birds", RunState.RUNNING)
        run_at(3, "birds", RunState.QUEUED, archived_at=MORNING)
        run_at(4, "birds", RunState.FAILED, deleted_at=MORNING)
        body = vera.get(EXPERIMENTS).json()
        assert body == {
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": birds.pk,
                    "name": "birds",
                    "run_count": 3,
                    "active_run_count": 2,
                    "created_at": "2026-11-28T08:00:00Z",
                    "last_run_at": "2026-11-28T11:00:00Z",
                }
            ],
        }

    def test_has_experiments_without_runs(self, vera: Client) -> None:
        experiment("empty", 0)
        (row,) = vera.get(EXPERIMENTS).json()["results"]
        assert (row["run_count"], row["active_run_count"], row["last_run_at"]) == (0, 0, None)

    def test_begins_with_the_newest_activity(self, vera: Client) -> None:
        for hour, name in enumerate(("first", "second", "third")):
            experiment(name, hour)
        run_at(5, "first")
        run_at(4, "second")
        run_at(6, "second", deleted_at=MORNING)
        assert names(vera) == ["first", "second", "third"]

    def test_omits_deleted_experiments(self, vera: Client) -> None:
        experiment("birds", 0)
        Experiment.objects.filter(pk=experiment("old", 1).pk).update(deleted_at=MORNING)
        assert names(vera) == ["birds"]

    def test_comes_in_pages_that_together_have_each_once(self, vera: Client) -> None:
        # Three of them at the same time, as after an import.
        for number in range(7):
            experiment(f"e{number}", min(number, 4))
        pages, url = [], f"{EXPERIMENTS}?page_size=2"
        while url:
            body = vera.get(url).json()
            pages.append([item["name"] for item in body["results"]])
            url = body["next"]
        assert pages == [["e6", "e5"], ["e4", "e3"], ["e2", "e1"], ["e0"]]

    def test_costs_as_many_queries_for_many_experiments_as_for_one(self, vera: Client) -> None:
        def query_count() -> int:
            with CaptureQueriesContext(connection) as queries:
                assert vera.get(EXPERIMENTS).status_code == 200
            return len(queries)

        run_at(1, "birds")
        vera.get(EXPERIMENTS)  # notes the use of the token
        one = query_count()
        for number in range(20):
            run_at(1, f"e{number}")
        assert query_count() == one <= 5


class TestFilter:
    def test_finds_the_exact_name(self, vera: Client) -> None:
        for name in ("birds", "birds 2", "Birds"):
            experiment(name, 0)
        assert names(vera, "?name=birds") == ["birds"]
        assert names(vera, "?name=bird") == []

    def test_of_an_unknown_kind_is_refused(self, vera: Client) -> None:
        refused(vera.get(f"{EXPERIMENTS}?nam=birds"), 400, "nam", "known parameters: cursor, name, page_size")

    @pytest.mark.parametrize("cursor", ["nonsense", base64.b64encode(b"p=yesterday").decode()])
    def test_with_a_cursor_of_nothing_is_a_problem(self, vera: Client, cursor: str) -> None:
        experiment("birds", 0)
        answer = vera.get(EXPERIMENTS, {"cursor": cursor})
        assert answer.status_code in (400, 404)
        assert answer.headers["Content-Type"] == "application/problem+json"


class TestAccess:
    def test_each_workspace_has_its_own(self, vera: Client) -> None:
        run_at(1, "birds")
        logged_run(experiment="secret", workspace=make_workspace("other"))
        assert names(vera) == ["birds"]
        assert names(vera, "?name=secret") == []

    def test_others_see_none_of_them(self, vera: Client) -> None:
        run_at(1, "birds")
        outsider = client_of(make_person("mallory", Role.OWNER, make_workspace("other")))
        assert names(outsider) == []
        assert client_of(make_stranger()).get(EXPERIMENTS).status_code == 404
        assert Client().get(EXPERIMENTS).status_code == 401

    def test_it_is_only_read(self) -> None:
        assert api_client(make_contributor()).post(EXPERIMENTS, {}, "application/json").status_code == 405
