from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.states import RunKind, RunState
from tests.people import client_of, make_contributor, make_owner, make_person, make_viewer, make_workspace
from tests.tracking.history.table_page import (
    HTMX,
    address,
    heads,
    names,
    row_markup,
    rows,
    table_text,
    text_of,
)
from tests.tracking.search.builders import put_metric, run_with_data
from tracking.models import Star, UsageEntry
from workspaces.states import Role

pytestmark = pytest.mark.django_db


class TestTable:
    def test_shows_the_chosen_columns_in_their_order(self) -> None:
        run = run_with_data("night", metrics={"acc": 0.91234}, params={"lr": "1e-3"}, tags={"team": "vision"})
        put_metric(run, "loss", 0.5, smallest=0.25)
        text = table_text(
            column=[
                "params.lr",
                "metrics.acc",
                "min(metrics.loss)",
                "tags.team",
                "experiment",
                "max(metrics.none)",
            ]
        )
        assert heads(text)[1:-1] == [
            "State",
            "Name",
            "lr",
            "acc",
            "min loss",
            "team",
            "Experiment",
            "max none",
        ]
        assert rows(text)[0][3:-1] == ["1e-3", "0.9123", "0.25", "vision", "birds", ""]

    def test_usually_shows_what_the_runs_are_compared_by(self) -> None:
        run_with_data("a", metrics={"grad_norm": 1, "val_loss": 2, "epoch": 3, "train_acc": 4})
        assert heads(table_text())[1:8] == [
            "State",
            "Name",
            "Run",
            "Experiment",
            "val_loss",
            "train_acc",
            "Framework",
        ]

    def test_is_narrowed_by_filter_and_quick_filters_together(self) -> None:
        run_with_data("good", metrics={"acc": 0.9})
        run_with_data("bad", metrics={"acc": 0.1})
        run_with_data("failed", metrics={"acc": 0.9}, state=RunState.FAILED)
        run_with_data("theirs", metrics={"acc": 0.9}, created_by=make_contributor())
        assert names(table_text(filter="metrics.acc > 0.5", state="active", mine=1)) == ["good"]
        assert names(table_text(filter="metrics.acc > 0.5", q="thei")) == ["theirs"]
        assert names(table_text(filter="metrics.acc > 0.5", experiment="cats")) == []

    def test_is_ordered_by_a_click_on_a_column_and_back(self) -> None:
        for name, acc in (("a", 0.1), ("b", 0.9), ("c", 0.5)):
            run_with_data(name, metrics={"acc": acc})
        run_with_data("d")
        first = table_text(column="metrics.acc")
        assert "order=metrics.acc%20DESC" in first
        down = table_text(column="metrics.acc", order="metrics.acc DESC")
        assert names(down) == ["b", "c", "a", "d"]
        assert 'aria-sort="descending"' in down
        assert "order=metrics.acc%20ASC" in down
        assert (
            "order="
            not in table_text(column="metrics.acc", order="metrics.acc ASC")
            .split("<tbody>")[0]
            .split("<thead>")[1]
        )

    def test_a_cell_has_the_condition_that_narrows_the_table_to_it(self) -> None:
        run_with_data("a", params={"opt": "ad  am"}, metrics={"acc": 0.5, "loss": float("nan")})
        columns = ["params.opt", "metrics.acc", "min(metrics.acc)", "metrics.loss", "experiment"]
        text = table_text(filter="metrics.acc > 0.1 OR starred", column=columns)
        assert [html.unescape(found) for found in re.findall(r'<td [^>]*data-narrow="([^"]*)"', text)] == [
            "= 'ad  am'",
            ">= 0.5",
            "<= 0.5",
            "= nan",
            "= 'birds'",
        ]
        assert re.findall(r'data-key="([^"]*)"', text) == columns
        assert 'data-narrow="(metrics.acc &gt; 0.1 OR starred) AND "' in text

    def test_a_cell_whose_condition_is_in_the_filter_has_none(self) -> None:
        run_with_data("a", params={"opt": "adam", "lr": "1"})
        text = table_text(filter="params.opt = 'adam'", column=["params.opt", "params.lr"])
        assert re.findall(r'<td [^>]*data-narrow="([^"]*)"', text) == ["= &#x27;1&#x27;"]

    def test_an_empty_value_is_one_that_can_be_searched_for(self) -> None:
        run = run_with_data("a", params={"opt": ""}, state=RunState.COMPLETED)
        UsageEntry.objects.create(
            workspace=run.workspace,
            run=run,
            run_number=run.number,
            attempt=1,
            month="2025-11-01",
            gpu_seconds=5400.0,
        )
        text = table_text(column=["params.opt", "gpu_hours", "artifact_uri"])
        assert rows(text)[0][3:6] == ["", "1.50", ""]
        narrow = re.findall(r'<td [^>]*data-narrow="([^"]*)"', text)
        assert [html.unescape(condition) for condition in narrow] == ["= ''", ">= 1.5"]

    def test_a_row_takes_less_than_two_kilobytes(self) -> None:
        metrics = {"val_loss": 0.123456789012345, "val_acc": 0.98765432109876}
        run = run_with_data("a-name-of-usual-length-seed-3", metrics=metrics, state=RunState.FAILED)
        run_with_data("part", parent=run)
        text = table_text()
        assert "GPU-hours" not in heads(text)
        assert len(row_markup(text, run.number).encode()) < 2_000

    def test_has_the_actions_of_each_kind_of_run_once(self) -> None:
        runs = {
            "active": run_with_data("a", kind=RunKind.JOB, state=RunState.RUNNING),
            "canceling": run_with_data("b", kind=RunKind.JOB, state=RunState.CANCEL_REQUESTED),
            "ended": run_with_data("c", kind=RunKind.JOB, state=RunState.FAILED),
            "external": run_with_data("d", kind=RunKind.EXTERNAL, state=RunState.RUNNING),
        }
        text = table_text()
        offered = {}
        for name, run in runs.items():
            assert f'data-actions="{name}"' in row_markup(text, run.number)
            template = text.split(f'<template data-actions-of="{name}">')[1].split("</template>")[0]
            offered[name] = re.findall(r'action="/runs/0/(\w+)/"', template)
        assert offered == {
            "active": ["cancel", "clone"],
            "canceling": ["clone"],
            "ended": ["clone", "delete"],
            "external": ["delete"],
        }
        assert "data-actions" not in table_text(make_viewer())

    def test_archived_and_deleted_ones_are_shown_where_they_are_asked_for(self) -> None:
        run_with_data("kept")
        run_with_data("archived", archived_at=timezone.now())
        run_with_data("deleted", deleted_at=timezone.now())
        assert names(table_text()) == ["kept"]
        assert names(table_text(view="archived")) == names(table_text(filter="archived")) == ["archived"]
        text = table_text(view="deleted")
        assert names(text) == ["deleted"]
        assert "Purged" in heads(text)
        assert "in " in rows(text)[0][-2]

    def test_is_paged(self) -> None:
        for number in range(51):
            run_with_data(f"run-{number}")
        first, second = table_text(), table_text(page=2)
        assert len(names(first)) == 50
        assert names(second) == ["run-0"]
        assert "1–50 of 51" in first
        assert "page=2" in first
        assert names(table_text(page=99)) == ["run-0"]

    def test_asks_the_database_equally_often_for_one_run_and_for_fifty(self) -> None:
        run_with_data("one", metrics={"acc": 1}, params={"lr": "1"})
        columns = ["metrics.acc", "params.lr", "experiment", "user_id", "gpu_hours", "cluster"]
        params: dict[str, Any] = {"column": columns, "filter": "metrics.acc > 0"}
        with CaptureQueriesContext(connection) as one:
            table_text(**params)
        for number in range(40):
            run_with_data(f"run-{number}", metrics={"acc": 1}, params={"lr": "1"})
        with CaptureQueriesContext(connection) as many:
            assert len(names(table_text(**params))) == 41
        assert len(many) == len(one)

    def test_a_star_is_drawn_for_who_gave_it(self) -> None:
        run = run_with_data("a")
        Star.objects.create(user=make_owner(), run=run)
        make_viewer()
        assert 'aria-pressed="true"' in table_text(make_owner())
        assert 'aria-pressed="true"' not in table_text(make_viewer())

    @pytest.mark.parametrize("headers", [HTMX, {}])
    def test_no_cache_takes_a_part_for_the_page(self, headers: dict[str, str]) -> None:
        for params in ("q=x", "filter=nonsense"):
            answer = client_of(make_owner()).get(f"/runs/?{params}", headers=headers)
            assert "no-store" in answer["Cache-Control"]
            assert "HX-Request" in answer["Vary"]


class TestParts:
    def test_what_is_part_of_a_run_is_no_row_of_its_own(self) -> None:
        job = run_with_data("job")
        run_with_data("part", parent=job, metrics={"acc": 0.5})
        text = table_text()
        assert names(text) == ["job"]
        assert f'data-unfold="/runs/parts/{job.number}/"' in text
        below = text_of(f"/runs/parts/{job.number}/?column=metrics.acc", headers=HTMX)
        assert names(below) == ["part"]
        assert "0.5" in below

    def test_is_found_where_it_is_what_is_looked_for(self) -> None:
        job = run_with_data("job")
        run_with_data("part", parent=job, metrics={"acc": 0.5})
        text = table_text(filter="metrics.acc > 0.1")
        assert names(text) == ["part"]
        assert f"part of run {job.number}" in text
        assert names(table_text(order="metrics.acc")) == ["part", "job"]


class TestRefusal:
    def test_points_at_the_character(self) -> None:
        text = text_of(address(filter="metrics.acc > 'x'"), status=400)
        assert "metrics.acc &gt; <u>&#x27;x&#x27;</u>" in text
        assert "write it without quotes (at character 15)" in text
        assert 'aria-invalid="true"' in text

    def test_comes_under_the_field_where_htmx_asks(self) -> None:
        make_owner()
        answer = text_of(address(filter="metrics.acc >"), headers=HTMX)
        assert "it ends here (at character 14)" in answer
        assert "<table" not in answer

    @pytest.mark.parametrize(
        "params",
        [{"order": "nonsense"}, {"column": "metrics."}, {"group": "metrics.acc"}, {"order": "a b c"}],
    )
    def test_an_address_that_cannot_be_read_says_what(self, params: dict[str, str]) -> None:
        assert "is not valid" in text_of(address(**params), status=400)

    @pytest.mark.parametrize("params", [
        {"page": "-1"}, {"page": "x"}, {"page": "9" * 50}, {"view": "nonsense"}, {"q": "\x00"}, {"column":
            ["experiment"] * 500},
        {"filter": "params.`a\x00b` = 'x'"}, {"filter": "name = '\U0001f600'"},
    ])  # fmt: skip
    def test_what_makes_no_sense_is_left_out(self, params: dict[str, str]) -> None:
        run_with_data("a")
        text_of(address(**params))


class TestAccess:
    def test_another_workspaces_runs_are_not_seen_however_they_are_asked_for(self) -> None:
        other = make_workspace("other")
        stranger = make_person("olga", Role.OWNER, other)
        job = run_with_data("secret", metrics={"hidden": 1}, params={"hidden": "x"}, tags={"hidden": "y"})
        run_with_data("part", parent=job)
        for params in (
            {},
            {"filter": "metrics.hidden = 1"},
            {"experiment": "birds"},
            {"group": "params.hidden"},
        ):
            text = text_of(address(**params), stranger, headers=HTMX)
            assert "secret" not in text
        assert "hidden" not in text_of("/runs/menu/columns/", stranger)
        assert "hidden" not in text_of(address("/runs/complete/", filter="metrics.h", at="9"), stranger)
        text_of(f"/runs/parts/{job.number}/", stranger, status=404)

    def test_a_viewer_is_offered_no_act(self) -> None:
        run_with_data("a")
        make_viewer()
        text = table_text(make_viewer())
        assert 'data-verb="delete"' not in text
        assert "data-compare" in text
