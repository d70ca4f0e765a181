from __future__ import annotations

import json
import re
from typing import Any

import pytest

from jobs.models import Member, Run
from jobs.states import RunState
from tests.jobs.builders import Played, alive, ended, launched, node, processes
from tests.markup import one_line
from tests.pages.builders import LOGS, failed, running, text_of
from tests.people import client_of, make_viewer
from workspaces.access import Principal

pytestmark = pytest.mark.django_db
HOUR_MS = 3_600_000


def page(run: Run, query: str = "") -> str:
    return one_line(text_of(client_of(make_viewer()), f"/runs/{run.number}/logs/{query}"))


def told(run: Run, query: str = "") -> dict[str, Any]:
    return dict(json.loads(text_of(client_of(make_viewer()), f"/runs/{run.number}/lanes/{query}")))


def lane(run: Run, name: str) -> dict[str, Any]:
    return next(item for item in told(run)["lanes"] if item["log"] == name)


class TestLanes:
    def test_tell_state_exit_and_last_line_of_each_rank(self, who: Principal) -> None:
        run = failed(who)
        first, second = lane(run, LOGS[0]), lane(run, LOGS[1])
        assert (first["word"], first["exit"], first["line"]) == ("Stopped", "SIGTERM", "epoch 2 loss=0.5")
        assert (second["word"], second["exit"], second["line"]) == (
            "Failed",
            "exit 1",
            "ValueError: no <b>batch</b> left",
        )
        text = page(run)
        assert "Failed · exit 1" in text
        assert "ValueError: no &lt;b&gt;batch&lt;/b&gt; left</span>" in text

    def test_lie_on_one_clock_from_the_first_start_to_the_last_end(self, who: Principal) -> None:
        run = failed(who)
        bars = [item["bar"] for item in told(run)["lanes"]]
        assert min(begin for begin, _ in bars) == 0
        assert all(0 <= begin <= end for begin, end in bars)

    def test_a_rank_that_runs_has_an_open_end(self, who: Principal) -> None:
        _, run = running(who)
        assert lane(run, LOGS[0])["bar"][1] is None
        assert " b:var(--now)" in page(run)

    def test_the_first_failure_is_marked_on_all(self, who: Principal) -> None:
        run = failed(who)
        assert told(run)["failed_s"] == lane(run, LOGS[1])["bar"][1]
        assert re.search(r"data-failed=\"[\d.]+\"", page(run))

    def test_nothing_is_marked_while_all_is_well(self, who: Principal) -> None:
        _, run = running(who)
        assert told(run)["failed_s"] is None
        assert "data-failed" not in page(run)

    def test_a_rank_that_had_fallen_silent_before_its_end_shows_it(self, who: Principal) -> None:
        run = failed(who)
        member = Member.objects.get(attempt__run=run, rank=0)
        assert member.ended_at is not None
        Member.objects.filter(pk=member.pk).update(
            ended_at=member.ended_at.replace(year=member.ended_at.year + 1)
        )
        (gap,) = lane(run, LOGS[0])["gaps"]
        assert gap[1] - gap[0] > 300 * 24 * 3600
        assert gap[2] == "silent"

    def test_before_anything_runs_there_is_no_clock_yet(self, who: Principal) -> None:
        run = launched(who, distribution=processes(2))
        assert told(run)["lanes"] == []
        assert "The ranks appear here" in page(run)

    def test_people_of_other_workspaces_learn_nothing(self, who: Principal) -> None:
        _, run = running(who)
        Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
        assert client_of(make_viewer()).get(f"/runs/{run.number + 1}/lanes/").status_code == 404


class TestNames:
    def test_other_logs_are_named_for_people_with_their_node(self, who: Principal) -> None:
        alpha, beta = Played(node("alpha")), Played(node("beta"))
        run = launched(who, distribution={**processes(2), "node_count": 2})
        for played in (alpha, beta):
            played.claim(run)
        for played in (alpha, beta):
            played.log(run, "55_preparation_log.txt", 0, b"unpacked\n")
        alpha.log(run, "60_launcher_log.txt", 0, b"mpirun\n")
        alpha.log(run, "logs/extra.txt", 0, b"own\n")
        found = re.findall(
            r'lane-title th-cut">([^<]*)</span><span class="lane-node th-cut">([^<]*)<', page(run)
        )
        assert sorted(found) == [
            ("Launcher", "alpha"),
            ("Preparation", "alpha"),
            ("Preparation", "beta"),
            ("extra.txt", "alpha"),
        ]

    def test_ranks_stand_by_node_where_there_are_several(self, who: Principal) -> None:
        node("alpha"), node("beta")
        run = launched(who, distribution={**processes(4), "node_count": 2})
        text = page(run)
        assert re.findall(r'class="lane-group" data-node="(\w+)" aria-label', text) == ["alpha", "beta"]
        assert text.count("2 ranks</span></h3>") == 2

    def test_roles_are_said_where_they_differ(self, who: Principal) -> None:
        node("alpha")
        cluster = {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1}
        run = launched(who, distribution=cluster, resources={"node_count": 1})
        text = page(run)
        assert "· ps</span>" in text
        assert "· worker</span>" in text


class TestMany:
    def test_256_ranks_are_told_in_one_answer_of_bounded_size(self, who: Principal) -> None:
        alpha = Played(node("alpha", slots=256))
        run = launched(who, distribution=processes(256))
        alpha.claim(run)
        alpha.tell(run, "running", *(alive(rank) for rank in range(256)))
        alpha.log(run, "70_driver_log_200.txt", 0, b"x" * 5000 + b"\n")
        answer = json.dumps(told(run))
        assert len(answer) < 256 * 400
        assert lane(run, "70_driver_log_200.txt")["line"].endswith("xxx")

    def test_ranks_that_end_together_keep_their_order(self, who: Principal) -> None:
        alpha = Played(node("alpha", slots=16))
        run = launched(who, distribution=processes(12))
        alpha.claim(run)
        alpha.tell(run, "done", *(ended(rank) for rank in range(12)))
        ranks = [item["log"] for item in told(run)["lanes"]]
        assert ranks == [f"70_driver_log_{rank}.txt" for rank in range(12)]
