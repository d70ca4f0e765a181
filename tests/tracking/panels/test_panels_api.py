"""The panels that people arrange for an experiment, through the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Experiment
from tests.api.asking import refused
from tests.people import api_client, make_contributor, make_viewer, make_workspace
from tests.tracking.builders import make_experiment
from tracking.panels import metric_panel

LOSS = {"metrics": ["train/loss", "eval/loss"], "x": "metrics.epoch", "smoothing": 0.5, "width": 2}


@pytest.fixture
def birds(db: None, valkey: str) -> Experiment:
    return make_experiment()


@pytest.fixture
def carl(birds: Experiment) -> Client:
    return api_client(make_contributor())


@pytest.fixture
def vera(birds: Experiment) -> Client:
    return api_client(make_viewer())


def put(client: Client, experiment: Experiment, *panels: object, revision: object = 0) -> Any:
    body = {"panels": list(panels), "revision": revision}
    return client.put(f"/api/v1/experiments/{experiment.pk}/panels/", body, "application/json")


def get(client: Client, experiment: Experiment) -> Any:
    return client.get(f"/api/v1/experiments/{experiment.pk}/panels/").json()


class TestLayout:
    def test_is_empty_until_somebody_arranges_one(self, vera: Client, birds: Experiment) -> None:
        layout = get(vera, birds)
        assert (layout["panels"], layout["revision"], layout["changed_at"]) == ([], 0, None)
        assert (layout["name"], layout["changed_by"]) == ("birds", "")

    def test_is_seen_by_everybody_as_a_contributor_saved_it(
        self, carl: Client, vera: Client, birds: Experiment
    ) -> None:
        answer = put(carl, birds, LOSS, {"metrics": ["lr"], "title": " Rate ", "log_y": True})
        assert answer.status_code == 200, answer.content
        layout = get(vera, birds)
        assert layout == answer.json()
        assert (layout["revision"], layout["changed_by"]) == (1, "carl")
        first, second = layout["panels"]
        unset = {"title": "", "log_x": False, "log_y": False, "is_pinned": False}
        assert first == unset | LOSS
        assert (second["title"], second["x"], second["log_y"], second["width"]) == ("Rate", "step", True, 1)

    def test_has_pinned_panels_first_and_otherwise_keeps_the_order(
        self, carl: Client, birds: Experiment
    ) -> None:
        panels = [{"metrics": [name], "is_pinned": name in "bd"} for name in "abcd"]
        stored = put(carl, birds, *panels).json()["panels"]
        assert [panel["metrics"] for panel in stored] == [["b"], ["d"], ["a"], ["c"]]

    def test_is_of_one_experiment_only(self, carl: Client, birds: Experiment) -> None:
        put(carl, birds, LOSS)
        assert get(carl, make_experiment("fish"))["panels"] == []

    def test_of_the_default_experiment_has_the_number_that_mlflow_knows(self, carl: Client) -> None:
        default = make_experiment("default")
        assert carl.get("/api/v1/experiments/0/panels/").json()["experiment"] == default.pk

    def test_goes_back_to_the_automatic_one(self, carl: Client, birds: Experiment) -> None:
        put(carl, birds, LOSS)
        assert carl.delete(f"/api/v1/experiments/{birds.pk}/panels/").status_code == 204
        assert (get(carl, birds)["panels"], get(carl, birds)["revision"]) == ([], 2)
        assert put(carl, birds, LOSS, revision=1).status_code == 409

    def test_is_not_overwritten_by_somebody_who_has_not_seen_it(
        self, carl: Client, birds: Experiment
    ) -> None:
        put(carl, birds, LOSS)
        answer = put(carl, birds, {"metrics": ["lr"]})
        assert answer.status_code == 409
        assert "Somebody has changed these panels" in answer.json()["detail"]
        assert get(carl, birds)["panels"][0]["metrics"] == LOSS["metrics"]
        assert put(carl, birds, revision=1).json()["revision"] == 2


class TestRefusals:
    def test_viewers_change_nothing(self, carl: Client, vera: Client, birds: Experiment) -> None:
        put(carl, birds, LOSS)
        assert put(vera, birds, revision=1).status_code == 403
        assert vera.delete(f"/api/v1/experiments/{birds.pk}/panels/").status_code == 403
        assert len(get(vera, birds)["panels"]) == 1

    def test_experiments_of_others_do_not_exist(self, carl: Client) -> None:
        foreign = make_experiment("theirs", make_workspace("other"))
        assert put(carl, foreign, LOSS).status_code == 404
        assert carl.get(f"/api/v1/experiments/{foreign.pk}/panels/").status_code == 404

    @pytest.mark.parametrize(
        ("panel", "field", "words"),
        [
            ("loss", "panels[0]", "JSON object"),
            ({}, "panels[0].metrics", "at least one"),
            ({"metrics": "loss"}, "panels[0].metrics", "must be a list"),
            ({"metrics": [1]}, "panels[0].metrics", "must be a list"),
            ({"metrics": [""]}, "panels[0].metrics.0", "is required"),
            ({"metrics": ["a\x00"]}, "panels[0].metrics.0", "NUL"),
            ({"metrics": ["a" * (metric_panel.MAX_KEY_LENGTH + 1)]}, "panels[0].metrics.0", "at most 250"),
            (
                {"metrics": [str(number) for number in range(metric_panel.MAX_METRICS + 1)]},
                "panels[0].metrics",
                "at most 12",
            ),
            ({"metrics": ["a"], "x": "epoch"}, "panels[0].x", "metrics.NAME"),
            ({"metrics": ["a"], "x": "metrics."}, "panels[0].x", "metrics.NAME"),
            ({"metrics": ["a"], "smoothing": 1}, "panels[0].smoothing", "0 to 0.999"),
            ({"metrics": ["a"], "smoothing": True}, "panels[0].smoothing", "must be a number"),
            ({"metrics": ["a"], "width": metric_panel.MAX_WIDTH + 1}, "panels[0].width", "between 1 and 3"),
            ({"metrics": ["a"], "log_x": 1}, "panels[0].log_x", "true or false"),
            ({"metrics": ["a"], "title": "t" * 101}, "panels[0].title", "at most 100"),
            ({"metrics": ["a"], "color": "red"}, "panels[0].color", "not a known field"),
        ],
    )
    def test_name_the_field(
        self, carl: Client, birds: Experiment, panel: object, field: str, words: str
    ) -> None:
        refused(put(carl, birds, panel), 400, field, words)

    def test_of_too_many_panels(self, carl: Client, birds: Experiment) -> None:
        panels = [{"metrics": ["a"]}] * (metric_panel.MAX_PANELS + 1)
        refused(put(carl, birds, *panels), 400, "panels", "at most 60")

    def test_of_a_revision_that_is_no_number(self, carl: Client, birds: Experiment) -> None:
        refused(put(carl, birds, LOSS, revision="one"), 400, "revision", "whole number")
