from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from jobs.models import RunTag
from jobs.states import RunState
from tests.api.asking import post, refused
from tests.people import api_client, make_contributor, make_person, make_viewer, make_workspace, token_of
from tests.tracking.search.builders import run_with_data
from tracking.models import Star
from workspaces import process_caches
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    process_caches.clear_all()
    return api_client(make_contributor())


def listed(client: Client, **asked: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/runs/?{urlencode(asked, doseq=True)}")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def names(client: Client, **asked: Any) -> list[str]:
    return [run["display_name"] for run in listed(client, **asked)["results"]]


class TestFilter:
    def test_finds_and_orders_by_what_runs_have_logged(self, client: Client) -> None:
        for name, acc in (("a", 0.1), ("b", 0.9), ("c", 0.5)):
            run_with_data(name, metrics={"acc": acc}, params={"opt": "adam" if name != "c" else "sgd"})
        assert names(client, filter="metrics.acc > 0.2") == ["c", "b"]
        assert names(client, filter="metrics.acc > 0.2", order="number") == ["b", "c"]
        assert names(client, filter="params.opt = 'adam'", order="metrics.acc DESC") == ["b", "a"]
        run_with_data("quick", metrics={"acc": 0.3}, state=RunState.FAILED)
        assert names(client, order="metrics.acc", state="Failed", search="qui") == ["quick"]

    def test_gives_the_values_that_are_asked_for(self, client: Client) -> None:
        run_with_data("a", metrics={"acc": 0.5, "worst": float("inf")}, params={"opt": "adam"})
        (run,) = listed(client, column=["metrics.acc", "max(metrics.worst)", "params.opt", "tags.none"])[
            "results"
        ]
        assert run["values"] == {
            "metrics.acc": 0.5,
            "max(metrics.worst)": "Infinity",
            "params.opt": "adam",
            "tags.none": None,
        }

    def test_goes_through_all_pages_in_either_kind_of_order(self, client: Client) -> None:
        for number in range(7):
            run_with_data(f"r{number}", metrics={"acc": number})
        for order in ("metrics.acc DESC", "-number"):
            found, address = [], f"/api/v1/runs/?{urlencode({'order': order, 'page_size': 3})}"
            while address:
                page = client.get(address).json()
                found += [run["display_name"] for run in page["results"]]
                address = page["next"]
            assert found == [f"r{number}" for number in reversed(range(7))]

    def test_a_mistake_is_named_by_its_character(self, client: Client) -> None:
        refused(client.get("/api/v1/runs/?filter=metrics.acc+%3E+x"), 400, "filter", "(at character 15)")
        refused(client.get("/api/v1/runs/?order=nonsense"), 400, "order", "not an attribute")
        refused(client.get("/api/v1/runs/?column=experiment"), 400, "column", "metrics, params or tags")
        refused(client.get("/api/v1/runs/?order=metrics.acc&cursor=x"), 400, "cursor", "start again")
        many = urlencode({"column": [f"metrics.m{number}" for number in range(51)]}, doseq=True)
        refused(client.get(f"/api/v1/runs/?{many}"), 400, "column", "at most 50 columns")
        refused(client.get("/api/v1/runs/?fliter=starred"), 400, "fliter", "not a known parameter")

    @pytest.mark.parametrize("skip", [-1, 1_000_001])
    def test_a_cursor_that_is_too_far_is_refused(self, client: Client, skip: int) -> None:
        cursor = base64.urlsafe_b64encode(f"skip={skip}".encode()).decode()
        answer = client.get(f"/api/v1/runs/?{urlencode({'order': 'metrics.acc', 'cursor': cursor})}")
        refused(answer, 400, "cursor", "is too far; narrow the list with a filter")

    def test_another_workspaces_runs_are_not_there(self, client: Client) -> None:
        run_with_data("secret", workspace=make_workspace("other"), metrics={"acc": 1})
        assert names(client, filter="metrics.acc = 1", order="metrics.acc") == []


class TestKeys:
    def test_are_those_of_the_workspace(self, client: Client) -> None:
        run_with_data("a", metrics={"acc": 1}, params={"opt": "adam"}, tags={"team": "x"})
        run_with_data("b", workspace=make_workspace("other"), metrics={"secret": 1})
        told = client.get("/api/v1/runs/columns/").json()
        assert (told["metrics"], told["params"], told["tags"]) == (["acc"], ["opt"], ["team"])
        assert {"name": "pinned", "type": "flag", "operators": ["=", "!="]} in told["attributes"]

    def test_completion_is_the_pages(self, client: Client) -> None:
        run_with_data("a", params={"opt": "adam"})
        told = client.get("/api/v1/runs/completion/?filter=params.opt+%3D+").json()
        assert told == {"begin": 13, "offers": [{"text": "'adam'", "kind": "value"}]}
        refused(client.get("/api/v1/runs/completion/?at=x"), 400, "at", "position")


class TestMarks:
    def test_star_and_pin_come_and_go(self, client: Client) -> None:
        run = run_with_data("a")
        for word in ("star", "pin"):
            assert client.put(f"/api/v1/runs/{run.number}/{word}/").status_code == 204
        assert names(client, filter="starred AND pinned") == ["a"]
        for word in ("star", "pin"):
            assert client.delete(f"/api/v1/runs/{run.pk}/{word}/").status_code == 204
        assert names(client, filter="starred OR pinned") == []

    def test_viewers_star_but_do_not_pin(self) -> None:
        run, viewer = run_with_data("a"), api_client(make_viewer())
        assert viewer.put(f"/api/v1/runs/{run.number}/star/").status_code == 204
        assert viewer.put(f"/api/v1/runs/{run.number}/pin/").status_code == 403
        assert Star.objects.count() == 1

    def test_tags_are_set_and_taken(self, client: Client) -> None:
        run = run_with_data("a")
        address = f"/api/v1/runs/{run.number}/tags/a/b c/"
        assert client.put(address, {"value": " x "}, content_type="application/json").status_code == 204
        assert RunTag.objects.get().value == " x "
        assert client.delete(address).status_code == 204
        assert client.delete(address).status_code == 404
        refused(
            client.put(address, {"value": "v" * 9000}, content_type="application/json"), 400, "value", "8000"
        )

    def test_one_tag_too_many_is_refused(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jobs.tags.MAX_TAGS", 1)
        run = run_with_data("a", tags={"team": "x"})
        answer = client.put(
            f"/api/v1/runs/{run.number}/tags/stage/", {"value": "1"}, content_type="application/json"
        )
        assert (answer.status_code, "a run may have 1 tags" in answer.json()["detail"]) == (400, True)
        assert list(RunTag.objects.values_list("key", flat=True)) == ["team"]


class TestBulk:
    def test_tells_what_was_done_and_what_was_refused(self, client: Client) -> None:
        ended, active = (
            run_with_data("a", state=RunState.COMPLETED),
            run_with_data("b", kind="job", state=RunState.RUNNING),
        )
        told = post(
            client, "/api/v1/runs/bulk/", {"verb": "delete", "runs": [ended.number, active.number]}
        ).json()
        assert told["done"] == [ended.number]
        why = f"Run {active.number} is Running; cancel it before you delete it."
        assert told["refused"] == [{"run": active.number, "why": why}]

    def test_needs_the_role_and_the_workspace(self, client: Client) -> None:
        run = run_with_data("a", state=RunState.COMPLETED)
        body = {"verb": "delete", "runs": [run.number]}
        assert post(api_client(make_viewer()), "/api/v1/runs/bulk/", body).status_code == 403
        olga = make_person("olga", Role.OWNER, make_workspace("other"))
        stranger = Client(headers={"authorization": f"Bearer {token_of(olga, make_workspace('other'))}"})
        assert post(stranger, "/api/v1/runs/bulk/", body).json()["done"] == []
        refused(post(client, "/api/v1/runs/bulk/", {"verb": "explode", "runs": [1]}), 400, "verb", "")
