from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Run
from tests.api.asking import refused
from tests.jobs.builders import Played, alive, launched, node, processes
from tests.people import make_person, make_workspace, token_of
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.usefixtures("valkey")
LOGS = ("70_driver_log_0.txt", "70_driver_log_1.txt")


@pytest.fixture
def run(who: Principal) -> Run:
    alpha = Played(node())
    made = launched(who, distribution=processes(2))
    alpha.claim(made)
    alpha.tell(made, "running", alive(0), alive(1))
    alpha.log(made, "20_environment_build_log.txt", 0, b"pip says needle\n")
    alpha.log(made, LOGS[0], 0, b"step 1\nneedle <b>0</b>\n")
    alpha.log(made, LOGS[1], 0, b"step 1\nstep 2\n\x1b[31mNeedle\x1b[0m 1\nneedle 2\n")
    return made


def search(client: Client, run: Run, **query: Any) -> Any:
    return client.get(f"/api/v1/runs/{run.pk}/logs/search/", query)


def texts(client: Client, run: Run, **query: Any) -> list[str]:
    answer = search(client, run, q="needle", **query)
    assert answer.status_code == 200, answer.content
    return [item["text"] for item in answer.json()["results"]]


class TestResults:
    def test_tell_where_when_and_what(self, viewer_api: Client, run: Run) -> None:
        body = search(viewer_api, run, q="needle 2").json()
        (found,) = body["results"]
        assert {
            name: found[name] for name in ("log", "rank", "node", "line", "offset", "text", "spans", "late")
        } == {
            "log": LOGS[1],
            "rank": 1,
            "node": "alpha",
            "line": 4,
            "offset": 32,
            "text": "needle 2",
            "spans": [[0, 8]],
            "late": False,
        }
        assert found["at"].startswith("20")
        assert 0 < found["resolution_s"] <= 0.25
        assert (body["attempt"], body["logs"], body["next"], body["total_bytes"]) == (1, 3, None, 80)

    def test_cover_every_log_in_the_order_of_time_or_rank(self, viewer_api: Client, run: Run) -> None:
        everything = ["pip says needle", "needle <b>0</b>", "Needle 1", "needle 2"]
        assert texts(viewer_api, run) == everything
        assert texts(viewer_api, run, order="rank") == [*everything[1:], everything[0]]

    def test_are_narrowed_to_ranks_and_logs(self, viewer_api: Client, run: Run) -> None:
        assert texts(viewer_api, run, rank="1") == ["Needle 1", "needle 2"]
        assert len(texts(viewer_api, run, rank="0,1")) == 3
        assert texts(viewer_api, run, log="20_environment_build_log.txt") == ["pip says needle"]
        assert len(texts(viewer_api, run, log="20_environment_build_log.txt", rank="0")) == 2

    def test_mind_the_case_or_an_expression_where_asked(self, viewer_api: Client, run: Run) -> None:
        assert len(texts(viewer_api, run, case="1")) == 3
        answer = search(viewer_api, run, q=r"^needle \d$", regex="1", case="1")
        assert [item["text"] for item in answer.json()["results"]] == ["needle 2"]

    def test_come_in_pages(self, viewer_api: Client, run: Run) -> None:
        found, cursor = [], ""
        while cursor is not None:
            body = search(viewer_api, run, q="needle", limit=1, cursor=cursor).json()
            found += [item["text"] for item in body["results"]]
            cursor = body["next"]
        assert found == ["pip says needle", "needle <b>0</b>", "Needle 1", "needle 2"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "field", "words"),
        [
            ({"q": ""}, "q", "is empty"),
            ({"q": "(a)\\1", "regex": "1"}, "q", "invalid escape sequence"),
            ({"q": "x", "rank": "7"}, "rank", "no rank 7"),
            ({"q": "x", "rank": "one"}, "rank", "such as 0,3"),
            ({"q": "x", "log": "../../sizes.json"}, "log", "has no log"),
            ({"q": "x", "limit": "0"}, "limit", "from 1 to 1000"),
            ({"q": "x", "order": "size"}, "order", "time or rank"),
            ({"q": "x", "case": "maybe"}, "case", "1 or 0"),
            ({"q": "x", "attempt": "9"}, "attempt", "between 1 and 1"),
            ({"q": "x", "cursor": "nonsense"}, "cursor", "is not the `next`"),
            ({"q": "x", "cursor": "WzEsIFsiYSJdLCAwLCBudWxsXQ=="}, "cursor", "is not the `next`"),
            ({"q": "x", "cursor": "WzEsICJvdGhlciIsIDAsIG51bGxd"}, "cursor", "another search"),
        ],
    )
    def test_name_the_field(
        self, viewer_api: Client, run: Run, query: dict[str, str], field: str, words: str
    ) -> None:
        refused(search(viewer_api, run, **query), 400, field, words)

    def test_people_of_other_workspaces_find_no_run(self, run: Run) -> None:
        other = make_workspace("other")
        token = token_of(make_person("otto", Role.OWNER, other), other)
        answer = search(Client(headers={"authorization": f"Bearer {token}"}), run, q="needle")
        assert answer.status_code == 404
        assert b"needle" not in answer.content

    def test_strangers_are_asked_to_sign_in(self, run: Run) -> None:
        assert search(Client(), run, q="needle").status_code == 401


def test_a_run_without_logs_finds_nothing(viewer_api: Client, who: Principal, node: Any) -> None:
    body = search(viewer_api, launched(who), q="x").json()
    assert (body["results"], body["next"], body["total_bytes"]) == ([], None, 0)
