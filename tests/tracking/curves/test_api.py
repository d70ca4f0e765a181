from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from django.test import Client

from jobs.models import Run
from tests.api.asking import refused
from tests.people import make_workspace
from tests.tracking.builders import logged_run
from tests.tracking.curves.builders import log, log_at
from tracking.curves.lines import start_ms


def series(api: Client, run: Run, **query: Any) -> Any:
    answer = api.get(f"/api/v1/runs/{run.pk}/metrics/series/", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def line(api: Client, run: Run, **query: Any) -> Any:
    """The loss."""
    (drawn,) = series(api, run, keys="loss", **query)["lines"]
    return drawn


class TestListing:
    def test_tells_each_metric_with_its_last_least_and_greatest_value(self, api: Client, run: Run) -> None:
        log(run, loss=[3.0, 1.0, 2.0], train__accuracy=[0.5])
        response = api.get(f"/api/v1/runs/{run.number}/metrics/").json()
        loss, accuracy = response["metrics"]
        assert [loss["key"], accuracy["key"]] == ["loss", "train/accuracy"]
        assert (loss["last"], loss["min"], loss["max"], loss["count"], loss["last_step"]) == (
            2.0,
            1.0,
            3.0,
            3,
            2,
        )
        assert loss["last_time"] == pytest.approx(start_ms(run) / 1000 + 2)
        assert (response["number"], response["name"], response["is_live"], response["children"]) == (
            run.number,
            "night",
            True,
            [],
        )

    def test_names_what_is_no_number(self, api: Client, run: Run) -> None:
        log(run, loss=[1.0, math.nan], rate=[math.nan], norm=[1.0, math.inf])
        response = {
            metric["key"]: metric for metric in api.get(f"/api/v1/runs/{run.pk}/metrics/").json()["metrics"]
        }
        assert (response["loss"]["last"], response["loss"]["min"]) == ("NaN", 1.0)
        assert (response["rate"]["last"], response["rate"]["min"], response["rate"]["max"]) == (
            "NaN",
            None,
            None,
        )
        assert (response["norm"]["last"], response["norm"]["max"]) == ("Infinity", "Infinity")

    def test_tells_of_the_runs_that_its_processes_logged_besides(self, api: Client, run: Run) -> None:
        child = logged_run("fold 1", parent=run)
        logged_run("fold of another", parent=logged_run("other"))
        log(child, loss=[1.0])
        response = api.get(f"/api/v1/runs/{run.pk}/metrics/", {"children": 1}).json()
        assert [(item["name"], item["metrics"][0]["key"]) for item in response["children"]] == [
            ("fold 1", "loss")
        ]


class TestSeries:
    def test_of_few_points_are_all_of_them(self, api: Client, run: Run) -> None:
        log(run, loss=[3.0, 1.0, 2.0])
        drawn = line(api, run)
        assert (drawn["x"], drawn["y"], drawn["marks"]) == ([0, 1, 2], [3.0, 1.0, 2.0], [])
        assert (drawn["points"], drawn["is_sampled"], drawn["last"]) == (3, False, 2.0)

    def test_of_many_are_as_many_as_the_pixels_need_and_keep_every_peak(self, api: Client, run: Run) -> None:
        values = np.sin(np.arange(20_000) / 900)
        values[7_777] = 40.0
        values[13_131] = -40.0
        log(run, loss=values.tolist())
        drawn = line(api, run, pixels=100)
        assert len(drawn["x"]) <= 400
        assert (drawn["points"], drawn["is_sampled"]) == (20_000, True)
        assert dict(zip(drawn["x"], drawn["y"], strict=True))[7_777] == 40.0
        assert min(drawn["y"]) == -40.0
        assert (drawn["x"][0], drawn["x"][-1]) == (0, 19_999)

    def test_of_a_span_are_finer(self, api: Client, run: Run) -> None:
        log(run, loss=range(20_000))
        drawn = line(api, run, pixels=100, **{"from": 5_000, "to": 5_200})
        inside = [x for x in drawn["x"] if 5_000 <= x <= 5_200]
        assert inside == list(range(5_000, 5_201))
        assert not drawn["is_sampled"]

    def test_mark_what_is_no_number_where_it_is(self, api: Client, run: Run) -> None:
        log(run, loss=[1.0, math.nan, 2.0, math.inf, -math.inf])
        drawn = line(api, run)
        assert (drawn["x"], drawn["y"]) == ([0, 2], [1.0, 2.0])
        assert drawn["marks"] == [[1, "NaN"], [3, "Infinity"], [4, "-Infinity"]]

    def test_lie_along_the_time_or_since_the_run_began(self, api: Client, run: Run) -> None:
        log(run, loss=[1.0, 2.0, 3.0])
        began = start_ms(run) / 1000
        assert line(api, run, axis="time")["x"] == pytest.approx([began, began + 1, began + 2])
        assert line(api, run, axis="relative")["x"] == pytest.approx([0, 1, 2])
        assert line(api, run, axis="relative", **{"from": 1.5, "to": 9})["x"] == pytest.approx([1, 2])

    def test_of_children_lie_on_the_clock_of_the_run(self, api: Client, run: Run) -> None:
        child = logged_run("fold 1", parent=run, started_at=run.started_at)
        log_at(child, {"loss": {5: 1.0}})
        (drawn,) = series(api, run, keys="loss", children=1, axis="relative")["lines"]
        assert (drawn["number"], drawn["x"]) == (child.number, [5.0])

    def test_come_metric_by_metric_and_leave_out_what_is_not_there(self, api: Client, run: Run) -> None:
        log(run, loss=[1.0], **{"a,b": [2.0]})
        response = series(api, run, keys="loss,nothing", key="a,b")
        assert [item["key"] for item in response["lines"]] == ["loss", "a,b"]

    def test_are_smoothed_over_all_points_whatever_is_drawn_of_them(self, api: Client, run: Run) -> None:
        values = np.random.default_rng(1).normal(size=5_000)
        log(run, loss=values.tolist())
        expected, last = [], 0.0
        for place, value in enumerate(values):
            last = last * 0.9 + 0.1 * value
            expected.append(last / (1 - 0.9 ** (place + 1)))
        whole = line(api, run, smoothing=0.9, pixels=50)
        assert whole["smooth"] == pytest.approx([expected[x] for x in whole["x"]])
        part = line(api, run, smoothing=0.9, pixels=50, **{"from": 4_000, "to": 4_020})
        assert part["smooth"] == pytest.approx([expected[x] for x in part["x"]])

    def test_are_smoothed_along_the_time_in_the_order_in_which_they_were_logged(
        self, api: Client, run: Run
    ) -> None:
        log(run, loss=[0.0, 1.0, 1.0], odd=[math.nan, math.inf])
        for axis in ("time", "relative"):
            assert line(api, run, axis=axis, smoothing=0.5)["smooth"] == pytest.approx([0, 2 / 3, 6 / 7])
        (drawn,) = series(api, run, keys="odd", smoothing=0.5)["lines"]
        assert (drawn["y"], drawn["smooth"], len(drawn["marks"])) == ([], [], 2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "field", "words"),
        [
            ({}, "keys", "at least one metric"),
            ({"keys": ",".join(map(str, range(201)))}, "keys", "at most 200"),
            ({"keys": "a", "axis": "epoch"}, "axis", "one of step, time, relative"),
            ({"keys": "a", "pixels": "0"}, "pixels", "from 1 to"),
            ({"keys": "a", "pixels": "many"}, "pixels", "whole number"),
            ({"keys": "a", "smoothing": "1"}, "smoothing", "from 0 to 0.999"),
            ({"keys": "a", "smoothing": "much"}, "smoothing", "from 0 to 0.999"),
            ({"keys": "a", "smoothing": "nan"}, "smoothing", "from 0 to 0.999"),
            ({"keys": "a", "from": "x"}, "from", "must be a number"),
            ({"keys": "a", "from": "nan"}, "from", "must be a number"),
            ({"keys": "a", "to": "inf"}, "to", "must be a number"),
            ({"keys": "a", "from": "5", "to": "5"}, "from", "before `to`"),
            ({"keys": "a", "axis": "time", "from": "noon"}, "from", "Unix seconds or ISO 8601"),
            ({"keys": "a", "children": "yes"}, "children", "0 or 1"),
            ({"keys": "a", "step": "1"}, "step", "not a known parameter"),
        ],
    )
    def test_name_the_parameter(
        self, api: Client, run: Run, query: dict[str, str], field: str, words: str
    ) -> None:
        refused(api.get(f"/api/v1/runs/{run.pk}/metrics/series/", query), 400, field, words)

    @pytest.mark.parametrize("rest", ["metrics/", "metrics/series/?keys=loss"])
    def test_nobody_learns_of_another_workspaces_run(self, api: Client, rest: str) -> None:
        foreign = logged_run(workspace=make_workspace("other"))
        log(foreign, loss=[1.0])
        assert api.get(f"/api/v1/runs/{foreign.pk}/{rest}").status_code == 404
        assert Client().get(f"/api/v1/runs/{foreign.pk}/{rest}").status_code == 401
