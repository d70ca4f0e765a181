"""Curves over another metric instead of the step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from django.test import Client

from jobs.models import Run
from tests.api.asking import refused
from tests.tracking.comparing.builders import trained
from tests.tracking.curves.builders import log, log_at
from tracking.curves.lines import start_ms
from tracking.metrics.point_writer import Point, append

# Value, step and milliseconds: step 1 is logged again after a restart.
EPOCHS = ((0.0, 0, 0), (5.0, 1, 1000), (7.0, 1, 2000))


def line(api: Client, run: Run, **query: Any) -> Any:
    query = {"keys": "loss", "axis": "metrics.epoch", **query}
    answer = api.get(f"/api/v1/runs/{run.pk}/metrics/series/", query)
    assert answer.status_code == 200, answer.content
    assert answer.json()["axis"] == query["axis"]
    (drawn,) = answer.json()["lines"]
    return drawn


def test_points_of_both_metrics_are_joined_by_step(api: Client, run: Run) -> None:
    log(run, loss=[4.0, 3.0, 2.0, 1.0], epoch=[0.0, 0.5, 1.0, 1.5])
    drawn = line(api, run)
    assert (drawn["x"], drawn["y"]) == ([0.0, 0.5, 1.0, 1.5], [4.0, 3.0, 2.0, 1.0])


def test_between_two_of_its_steps_the_metric_on_the_axis_is_interpolated(api: Client, run: Run) -> None:
    losses = {step: 10.0 - step for step in range(8)}
    log_at(run, {"loss": losses, "epoch": {2: 1.0, 6: 2.0}})
    drawn = line(api, run)
    # What was logged before the first epoch and after the last one has no x.
    assert (drawn["x"], drawn["y"]) == ([1.0, 1.25, 1.5, 1.75, 2.0], [8.0, 7.0, 6.0, 5.0, 4.0])


def test_the_value_that_was_logged_last_counts_for_a_step(api: Client, run: Run) -> None:
    began = start_ms(run)
    log(run, loss=[1.0, 2.0])
    append(run.pk, run.experiment_id, [Point("epoch", x, step, began + ms) for x, step, ms in EPOCHS])
    assert line(api, run)["x"] == [0.0, 7.0]


def test_a_line_may_go_back_and_forth(api: Client, run: Run) -> None:
    log(run, loss=[4.0, 3.0, 2.0, 1.0], lr=[0.1, 0.2, 0.2, 0.1])
    drawn = line(api, run, axis="metrics.lr")
    assert (drawn["x"], drawn["y"]) == ([0.1, 0.2, 0.2, 0.1], [4.0, 3.0, 2.0, 1.0])


def test_a_span_has_one_more_point_on_each_side(api: Client, run: Run) -> None:
    log(run, loss=range(10), epoch=range(10))
    assert line(api, run, **{"from": 3.5, "to": 5.5})["x"] == [3, 4, 5, 6]


def test_values_that_are_no_numbers_are_marked_at_their_place(api: Client, run: Run) -> None:
    log(run, loss=[1.0, math.nan, 3.0], epoch=[0.0, 1.0, 2.0])
    drawn = line(api, run)
    assert (drawn["x"], drawn["marks"]) == ([0.0, 2.0], [[1.0, "NaN"]])


def test_many_points_are_sampled_and_keep_their_peak(api: Client, run: Run) -> None:
    count = 5_000
    losses = [math.sin(step) for step in range(count)]
    losses[1234] = 99.0
    log(run, loss=losses, epoch=np.linspace(0, 10, count), lr=[step % 7 for step in range(count)])
    for axis in ("metrics.epoch", "metrics.lr"):
        drawn = line(api, run, axis=axis, pixels=100)
        assert len(drawn["x"]) <= 400
        assert (drawn["points"], drawn["is_sampled"], max(drawn["y"])) == (count, True, 99.0)


def test_the_average_is_taken_in_the_order_of_the_steps(api: Client, run: Run) -> None:
    log(run, loss=[0.0, 1.0, 1.0], lr=[3.0, 2.0, 1.0])
    assert line(api, run, axis="metrics.lr", smoothing=0.5)["smooth"] == pytest.approx([0, 2 / 3, 6 / 7])


def test_runs_without_the_metric_have_no_line(api: Client) -> None:
    one, other = trained(curves={"loss": [1, 2], "epoch": [0, 1]}), trained(curves={"loss": [5]})
    query = {"runs": f"{one.number},{other.number}", "keys": "loss", "axis": "metrics.epoch"}
    lines = api.get("/api/v1/compare/series/", query).json()["lines"]
    assert [item["number"] for item in lines] == [one.number]


def test_means_of_groups_are_drawn_over_it_too(api: Client) -> None:
    runs = [
        trained(params={"lr": "0.1"}, curves={"loss": [3, 2, 1 + place], "epoch": [0, 5, 10]})
        for place in (0, 2)
    ]
    query = {
        "runs": ",".join(str(run.number) for run in runs),
        "keys": "loss",
        "axis": "metrics.epoch",
        "group": "params.lr",
    }
    (band,) = api.get("/api/v1/compare/series/", query).json()["bands"]
    assert (band["x"], band["mean"]) == ([0.0, 5.0, 10.0], [3.0, 2.0, 2.0])


def test_an_axis_without_a_name_is_refused(api: Client, run: Run) -> None:
    answer = api.get(f"/api/v1/runs/{run.pk}/metrics/series/", {"keys": "loss", "axis": "metrics."})
    refused(answer, 400, "axis", "metrics.NAME")
