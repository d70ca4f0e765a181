from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Run
from tests.api.asking import refused
from tests.people import make_workspace
from tests.tracking.builders import logged_run
from tests.tracking.comparing.builders import trained
from tests.tracking.curves.builders import log_at


def named(*runs: Run) -> str:
    return ",".join(str(run.number) for run in runs)


def series(api: Client, *runs: Run, **query: Any) -> Any:
    answer = api.get("/api/v1/compare/series/", {"runs": named(*runs), **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


class TestSeries:
    def test_of_several_runs_come_in_one_answer_in_the_order_asked_for(self, api: Client) -> None:
        one, other = trained(curves={"loss": [1, 2]}), trained(curves={"loss": [5], "rate": [7]})
        response = series(api, other, one, keys="loss,rate")
        assert [(item["key"], item["number"], item["y"]) for item in response["lines"]] == [
            ("loss", other.number, [5.0]),
            ("loss", one.number, [1.0, 2.0]),
            ("rate", other.number, [7.0]),
        ]

    def test_lie_each_on_its_runs_own_clock(self, api: Client) -> None:
        now = timezone.now()
        early, late = trained(started_at=now - timedelta(days=2)), trained(started_at=now)
        for run in (early, late):
            log_at(run, {"loss": {3: 1.0}})
        assert [item["x"] for item in series(api, early, late, keys="loss", axis="relative")["lines"]] == [
            [3.0],
            [3.0],
        ]

    def test_may_be_asked_for_by_number_or_id(self, api: Client) -> None:
        one, other = trained(curves={"loss": [1]}), trained(curves={"loss": [2]})
        response = api.get(
            "/api/v1/compare/series/", {"runs": f"{one.pk},{other.number},{one.number}", "keys": "loss"}
        ).json()
        assert [item["number"] for item in response["lines"]] == [one.number, other.number]

    def test_their_metrics_are_listed_run_by_run(self, api: Client) -> None:
        one, other = trained(curves={"loss": [1]}), trained(curves={"rate": [2]})
        response = api.get("/api/v1/compare/metrics/", {"runs": named(one, other)}).json()
        assert [[metric["key"] for metric in run["metrics"]] for run in response["runs"]] == [
            ["loss"],
            ["rate"],
        ]


class TestGrouped:
    def test_are_the_mean_of_the_runs_that_share_a_value_with_its_spread(self, api: Client) -> None:
        low = [trained(params={"lr": "0.1"}, curves={"loss": [value, value]}) for value in (1, 2, 3)]
        high = trained(params={"lr": "0.2"}, curves={"loss": [9, 9]})
        response = series(api, *low, high, keys="loss", group="params.lr")
        first, second = response["bands"]
        assert (first["group"], first["runs"], first["x"]) == ("0.1", [run.number for run in low], [0, 1])
        assert (first["mean"], first["low"], first["high"]) == ([2.0, 2.0], [1.0, 1.0], [3.0, 3.0])
        assert (second["group"], second["mean"], second["low"]) == ("0.2", [9.0, 9.0], [9.0, 9.0])

    def test_between_steps_of_one_run_its_line_counts(self, api: Client) -> None:
        one, other = trained(params={"lr": "1"}), trained(params={"lr": "1"})
        log_at(one, {"loss": {0: 0.0, 10: 10.0}})
        log_at(other, {"loss": {5: 5.0, 20: 40.0}})
        (band,) = series(api, one, other, keys="loss", group="params.lr")["bands"]
        assert dict(zip(band["x"], band["mean"], strict=True)) == pytest.approx(
            {0: 0, 5: 5, 10: (10 + 5 + 35 / 3) / 2, 20: 40}
        )

    def test_of_many_points_are_one_for_each_pixel(self, api: Client) -> None:
        runs = [trained(params={"lr": "1"}, curves={"loss": [value] * 5_000}) for value in (1, 3)]
        (band,) = series(api, *runs, keys="loss", group="params.lr", pixels=100)["bands"]
        assert len(band["x"]) == 100
        assert set(band["mean"]) == {2.0}

    def test_runs_without_the_param_are_a_group_of_their_own(self, api: Client) -> None:
        runs = [trained(params={"lr": "1"}, curves={"loss": [1]}), trained(curves={"loss": [2]})]
        assert [band["group"] for band in series(api, *runs, keys="loss", group="params.lr")["bands"]] == [
            "1",
            "",
        ]

    def test_a_group_of_which_no_run_has_a_number_has_no_band(self, api: Client) -> None:
        runs = [
            trained(params={"lr": "1"}, curves={"loss": [math.nan, math.inf]}),
            trained(params={"lr": "2"}, curves={"loss": [2]}),
        ]
        bands = series(api, *runs, keys="loss", group="params.lr")["bands"]
        assert [band["group"] for band in bands] == ["2"]

    def test_by_a_tag_as_well(self, api: Client) -> None:
        runs = [
            trained(tags={"team": "a"}, curves={"loss": [1]}),
            trained(tags={"team": "b"}, curves={"loss": [2]}),
        ]
        assert [band["group"] for band in series(api, *runs, keys="loss", group="tags.team")["bands"]] == [
            "a",
            "b",
        ]


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "field", "words"),
        [
            ({"keys": "a"}, "runs", "must name the runs"),
            ({"keys": "a", "runs": ",".join(map(str, range(1, 22)))}, "runs", "at most 20 runs, not 21"),
            ({"keys": "a", "runs": "1;2"}, "runs", "neither a run's number nor its id"),
        ],
    )
    def test_name_the_parameter(self, api: Client, query: dict[str, str], field: str, words: str) -> None:
        refused(api.get("/api/v1/compare/series/", query), 400, field, words)

    def test_say_how_many_curves_are_too_many(self, api: Client) -> None:
        runs, keys = [trained() for _ in range(6)], ",".join(map(str, range(200)))
        answer = api.get("/api/v1/compare/series/", {"runs": named(*runs), "keys": keys})
        refused(answer, 400, "keys", "more than 1000 curves; request fewer at once")
        assert series(api, *runs[:5], keys=keys)["lines"] == []

    def test_say_what_means_may_be_grouped_by(self, api: Client) -> None:
        run = trained(curves={"a": [1]})
        asked = {"keys": "a", "runs": str(run.number), "group": "lr"}
        refused(api.get("/api/v1/compare/series/", asked), 400, "group", "params.NAME")

    def test_nobody_learns_of_another_workspaces_run(self, api: Client) -> None:
        own, foreign = trained(curves={"loss": [1]}), logged_run(workspace=make_workspace("other"))
        for path in ("series/?keys=loss&", "metrics/?"):
            assert api.get(f"/api/v1/compare/{path}runs={named(own, foreign)}").status_code == 404

    def test_a_deleted_run_is_not_there(self, api: Client) -> None:
        run = trained(curves={"loss": [1]}, deleted_at=timezone.now())
        assert (
            api.get("/api/v1/compare/series/", {"runs": str(run.number), "keys": "loss"}).status_code == 404
        )
