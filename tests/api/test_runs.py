from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client

from clusters.models import Node
from jobs.logs import log_store
from jobs.models import Artifact, Run
from jobs.scheduling import run_actions
from tests.api.asking import RUNS, post
from tests.jobs import builders
from tests.jobs.builders import Played, alive, ended
from tests.people import api_client, client_of, make_person, make_stranger, make_workspace, principal_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.usefixtures("valkey", "node")
LOG = "70_driver_log.txt"


def finished(who: Principal, node: Node, **changes: Any) -> Run:
    """A run that printed `hello` and exited 0."""
    run = builders.launched(who, **changes)
    played = Played(node)
    played.claim(run)
    played.tell(run, "running", alive(0))
    played.log(run, LOG, 0, b"hello\n")
    played.tell(run, "done", ended(0), logs={LOG: 6})
    run.refresh_from_db()
    return run


def ids(answer: Any) -> list[int]:
    assert answer.status_code == 200, answer.content
    return [run["number"] for run in answer.json()["results"]]


class TestList:
    @pytest.fixture
    def three(self, who: Principal) -> list[Run]:
        first = builders.queued(who, display_name="baseline", experiment="digits")
        second = builders.queued(who, display_name="wide", experiment="digits")
        third = builders.queued(who, display_name="deep", experiment="faces")
        run_actions.cancel(second, who.user)
        return [first, second, third]

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            ("", [3, 2, 1]),
            ("?state=Canceled", [2]),
            ("?state=active", [3, 1]),
            ("?experiment=digits", [2, 1]),
            ("?created_by=carl", [3, 2, 1]),
            ("?created_by=vera", []),
            ("?search=WID", [2]),
            ("?search=faces", [3]),
            ("?search=3", [3]),
            ("?order=number", [1, 2, 3]),
            ("?order=display_name", [1, 3, 2]),
            ("?state=active&experiment=digits", [1]),
        ],
    )
    def test_is_filtered_and_ordered(
        self, viewer_api: Client, three: list[Run], query: str, numbers: list[int]
    ) -> None:
        assert ids(viewer_api.get(f"{RUNS}{query}")) == numbers

    @pytest.mark.parametrize("order", ["-created_at", "number", "state_since", "-display_name"])
    def test_is_read_page_by_page_without_gap_or_repetition(
        self, viewer_api: Client, who: Principal, order: str
    ) -> None:
        for _ in range(7):
            builders.queued(who, display_name="same")
        seen: list[int] = []
        path = f"{RUNS}?page_size=3&order={order}"
        while path:
            answer = viewer_api.get(path)
            seen += ids(answer)
            following = urlsplit(answer.json()["next"] or "")
            path = f"{following.path}?{following.query}" if following.query else ""
        assert sorted(seen) == [1, 2, 3, 4, 5, 6, 7]

    @pytest.mark.parametrize(
        ("query", "field"),
        [("state=Done", "state"), ("stat=Failed", "stat"), ("order=-secret", "order"), ("order=", "order")],
    )
    def test_refuses_what_it_does_not_know(self, viewer_api: Client, query: str, field: str) -> None:
        answer = viewer_api.get(f"{RUNS}?{query}")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == field

    def test_refuses_a_broken_cursor(self, viewer_api: Client) -> None:
        assert viewer_api.get(f"{RUNS}?cursor=nonsense").headers["Content-Type"] == "application/problem+json"

    def test_costs_the_same_for_many_runs(
        self, viewer_api: Client, who: Principal, django_assert_max_num_queries: Any
    ) -> None:
        for _ in range(6):
            builders.queued(who)
        with django_assert_max_num_queries(6):
            viewer_api.get(RUNS)


class TestDetail:
    def test_tells_everything_by_id_and_by_number(
        self, viewer_api: Client, who: Principal, node: Node
    ) -> None:
        run = finished(who, node)
        body = viewer_api.get(f"{RUNS}{run.pk}/").json()
        assert body == viewer_api.get(f"{RUNS}{run.number}/").json()
        assert (body["state"], body["sentence"], body["framework"]) == (
            "Completed",
            "All ranks finished.",
            "single",
        )
        assert [(member["rank"], member["exit_code"], member["node"]) for member in body["members"]] == [
            (0, 0, "alpha")
        ]
        assert body["attempts"][0]["nodes"] == ["alpha"]
        assert body["attempts"][0]["plan"]["printed"].startswith("single: 1 process on 1 node")

    def test_shows_no_token(self, viewer_api: Client, who: Principal, node: Node) -> None:
        run = builders.launched(who)
        token = Played(node).claim(run).values["launch:token"]
        for path in ("", "events/", "members/", "logs/", "outputs/"):
            assert token not in viewer_api.get(f"{RUNS}{run.pk}/{path}").content.decode()

    @pytest.mark.parametrize("name", ["0" * 32, "99", "nonsense", "١"])
    def test_of_an_unknown_run_is_404(self, viewer_api: Client, name: str) -> None:
        assert viewer_api.get(f"{RUNS}{name}/").status_code == 404


PATHS = ["", "events/", "members/", "logs/", "outputs/"]


class TestAccess:
    @pytest.mark.parametrize("path", PATHS)
    def test_a_run_is_not_there_for_strangers_and_other_workspaces(self, who: Principal, path: str) -> None:
        run = builders.queued(who)
        elsewhere = make_person("otto", Role.OWNER, make_workspace("other"))
        for person in (make_stranger(), elsewhere):
            assert client_of(person).get(f"{RUNS}{run.pk}/{path}").status_code == 404

    @pytest.mark.parametrize("verb", ["cancel", "clone"])
    def test_nor_can_they_act_on_it(self, who: Principal, verb: str) -> None:
        run = builders.queued(who)
        elsewhere = make_person("otto", Role.OWNER, make_workspace("other"))
        for person in (make_stranger(), elsewhere):
            assert client_of(person).post(f"{RUNS}{run.pk}/{verb}/").status_code == 404
            assert client_of(person).delete(f"{RUNS}{run.pk}/").status_code == 404
        run.refresh_from_db()
        assert run.state == "Queued"

    def test_other_workspaces_are_not_listed(self, who: Principal) -> None:
        builders.queued(who)
        other = make_workspace("other")
        otto = make_person("otto", Role.OWNER, other)
        assert ids(client_of(otto).get(RUNS)) == []
        assert principal_of(otto).workspace == other

    def test_a_viewer_cannot_cancel_or_delete(self, viewer_api: Client, who: Principal) -> None:
        run = builders.queued(who)
        for answer in (viewer_api.post(f"{RUNS}{run.pk}/cancel/"), viewer_api.delete(f"{RUNS}{run.pk}/")):
            assert answer.status_code == 403
            assert "needs the role contributor" in answer.json()["detail"]

    @pytest.mark.parametrize("path", PATHS)
    def test_nobody_is_told_to_sign_in(self, who: Principal, path: str) -> None:
        assert Client().get(f"{RUNS}{builders.queued(who).pk}/{path}").status_code == 401


class TestCancel:
    def test_ends_a_waiting_run_at_once_and_may_be_asked_again(self, api: Client, who: Principal) -> None:
        run = builders.queued(who)
        first, second = (api.post(f"{RUNS}{run.pk}/cancel/") for _ in range(2))
        assert (first.status_code, second.status_code) == (202, 202)
        assert second.json()["sentence"] == "Canceled by carl."

    def test_asks_a_running_one_to_end(self, api: Client, who: Principal, node: Node) -> None:
        run = builders.launched(who)
        Played(node).claim(run)
        assert api.post(f"{RUNS}{run.number}/cancel/").json()["state"] == "CancelRequested"

    def test_of_an_ended_run_is_a_conflict(self, api: Client, who: Principal, node: Node) -> None:
        answer = api.post(f"{RUNS}{finished(who, node).pk}/cancel/")
        assert answer.status_code == 409
        assert answer.json()["detail"] == "Run 1 is Completed already; there is nothing to cancel."


class TestClone:
    def test_returns_a_spec_that_can_be_submitted_as_it_is(self, api: Client, who: Principal) -> None:
        run = builders.queued(who, arguments=["--epochs", "3"], tags={"a": "b"})
        spec = api.post(f"{RUNS}{run.pk}/clone/").json()
        assert (spec["arguments"], spec["tags"], spec["display_name"]) == (["--epochs", "3"], {"a": "b"}, "")
        assert post(api, RUNS, spec).json()["number"] == 2


class TestDelete:
    def test_hides_an_ended_run_and_keeps_its_logs(self, api: Client, who: Principal, node: Node) -> None:
        run = finished(who, node)
        assert api.delete(f"{RUNS}{run.pk}/").status_code == 204
        assert api.get(f"{RUNS}{run.pk}/").status_code == 404
        assert log_store.run_folder(run.pk).exists()

    def test_of_a_living_run_is_a_conflict(self, api: Client, who: Principal) -> None:
        answer = api.delete(f"{RUNS}{builders.queued(who).pk}/")
        assert answer.status_code == 409
        assert answer.json()["detail"] == "Run 1 is Queued; cancel it before you delete it."


class TestParts:
    def test_the_journal_is_told_in_order(self, viewer_api: Client, who: Principal, node: Node) -> None:
        events = viewer_api.get(f"{RUNS}{finished(who, node).pk}/events/").json()
        states = [event["to_state"] for event in events if event["to_state"]]
        assert states[:2] == ["Queued", "Provisioning"]
        assert states[-1] == "Completed"
        assert events[0]["actor"] == "carl"

    def test_members_are_the_ranks(self, viewer_api: Client, who: Principal) -> None:
        run = builders.launched(who, distribution=builders.processes(3))
        members = viewer_api.get(f"{RUNS}{run.pk}/members/").json()
        assert [(member["rank"], member["log_name"]) for member in members] == [
            (n, f"70_driver_log_{n}.txt") for n in range(3)
        ]

    def test_logs_have_sizes_and_an_end(self, viewer_api: Client, who: Principal, node: Node) -> None:
        run = builders.launched(who)
        assert viewer_api.get(f"{RUNS}{run.pk}/logs/").json() == {
            "attempt": 1,
            "logs": [
                {
                    "name": LOG,
                    "rank": 0,
                    "size": 0,
                    "complete": False,
                    "url": f"/api/v1/runs/{run.pk}/logs/{LOG}?attempt=1",
                }
            ],
            "removed": "",
        }
        Played(node).claim(run)
        Played(node).log(run, LOG, 0, b"hello\n")
        assert viewer_api.get(f"{RUNS}{run.pk}/logs/").json()["logs"][0]["size"] == 6

    def test_a_finished_log_is_complete(self, viewer_api: Client, who: Principal, node: Node) -> None:
        logs = viewer_api.get(f"{RUNS}{finished(who, node).pk}/logs/").json()["logs"]
        assert [(log["size"], log["complete"]) for log in logs] == [(6, True)]

    def test_outputs_are_listed_with_the_address_of_their_bytes(
        self, viewer_api: Client, who: Principal, node: Node
    ) -> None:
        run = finished(who, node)
        Artifact.objects.create(run=run, attempt=1, path="outputs/my model.pt", size_bytes=3, sha256="a" * 64)
        assert viewer_api.get(f"{RUNS}{run.pk}/outputs/").json()["outputs"] == [
            {
                "path": "outputs/my model.pt",
                "size_bytes": 3,
                "sha256": "a" * 64,
                "place": "",
                "url": f"/api/v1/runs/{run.pk}/outputs/outputs/my%20model.pt?attempt=1",
            }
        ]

    def test_before_the_first_attempt_there_is_nothing(self, viewer_api: Client, who: Principal) -> None:
        run = builders.queued(who)
        assert viewer_api.get(f"{RUNS}{run.pk}/logs/").json() == {"attempt": 0, "logs": [], "removed": ""}
        assert viewer_api.get(f"{RUNS}{run.pk}/members/").json() == []
        answer = viewer_api.get(f"{RUNS}{run.pk}/members/?attempt=1")
        assert answer.json()["errors"][0]["message"] == "there is none yet; the run waits for its first"

    def test_an_attempt_is_chosen_by_its_number(self, viewer_api: Client, who: Principal) -> None:
        run = builders.launched(who)
        assert len(viewer_api.get(f"{RUNS}{run.pk}/members/?attempt=1").json()) == 1

    @pytest.mark.parametrize("attempt", ["0", "2", "-1", "x", "", "9" * 40])
    @pytest.mark.parametrize("path", ["members/", "logs/", "outputs/"])
    def test_another_attempt_than_there_is_is_refused(
        self, viewer_api: Client, who: Principal, path: str, attempt: str
    ) -> None:
        answer = viewer_api.get(f"{RUNS}{builders.launched(who).pk}/{path}?attempt={attempt}")
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"field": "attempt", "message": "must be between 1 and 1"}]


def test_me_says_as_whom_the_token_acts(viewer_api: Client) -> None:
    answer = viewer_api.get("/api/v1/me/").json()
    assert (answer["user"], answer["workspace"]) == ("vera", "default")
    assert (answer["role"], answer["scope"]) == ("viewer", "write")


def test_the_session_of_a_page_reads_the_api(who: Principal) -> None:
    assert client_of(who.user).get(RUNS).status_code == 200
    assert api_client(who.user).get(RUNS).status_code == 200
