from __future__ import annotations

import math
import statistics
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.states import RunState
from tests.markup import one_line
from tests.tracking.history.table_page import HTMX, heads, names, rows, table_text, text_of
from tests.tracking.search.builders import run_with_data
from tracking.history.number_format import format_number, mean_and_spread, spread_figure
from tracking.models import UsageEntry

pytestmark = pytest.mark.django_db


class TestGroups:
    def test_a_metric_of_an_attributes_name_is_no_group(self) -> None:
        run_with_data("a", metrics={"state": 0.5})
        assert "Runs are grouped by params, tags" in table_text(group="metrics.state")

    def test_are_one_row_each_with_mean_and_spread_over_the_seeds(self) -> None:
        values = {"adam": [0.90, 0.92, 0.94], "sgd": [0.5, 0.7]}
        for optimizer, accs in values.items():
            for seed, acc in enumerate(accs):
                run_with_data(
                    f"{optimizer}-{seed}", params={"opt": optimizer, "seed": str(seed)}, metrics={"acc": acc}
                )
        text = table_text(group="params.opt", column="metrics.acc", order="metrics.acc DESC")
        assert heads(text)[1:4] == ["Runs", "opt", "acc"]
        assert [row[1:4] for row in rows(text)] == [
            ["3", "adam", "0.920 ± 0.020"],
            ["2", "sgd", "0.60 ± 0.14"],
        ]
        assert f"standard deviation {statistics.stdev(values['sgd'])!r}"[:40] in text
        assert "2 groups of 5 runs" in one_line(text)

    def test_say_how_many_have_the_number_where_not_all_have(self) -> None:
        run_with_data("a", params={"lr": "1"}, metrics={"acc": 0.5})
        run_with_data("b", params={"lr": "1"}, metrics={"acc": math.nan})
        run_with_data("c", params={"lr": "1"})
        assert rows(table_text(group="params.lr", column="metrics.acc"))[0][1:4] == ["3", "1", "0.5 n=1"]

    def test_runs_without_the_key_are_a_group_too(self) -> None:
        run_with_data("a", params={"lr": "1"})
        run_with_data("b")
        assert sorted(row[2] for row in rows(table_text(group="params.lr"))) == ["1", "none"]

    def test_can_be_made_by_several_keys(self) -> None:
        run_with_data("a", params={"lr": "1", "opt": "x"}, tags={"t": "y"})
        run_with_data("b", params={"lr": "1", "opt": "z"}, tags={"t": "y"}, state=RunState.FAILED)
        text = table_text(group=["params.lr", "params.opt", "tags.t", "state", "experiment"])
        assert sorted(row[2] for row in rows(text)) == [
            "1 · x · y · Running · birds",
            "1 · z · y · Failed · birds",
        ]

    def test_unfold_to_their_runs(self) -> None:
        run_with_data("in", params={"opt": "it's"}, metrics={"acc": 1})
        run_with_data("out", params={"opt": "sgd"}, metrics={"acc": 1})
        run_with_data("none", metrics={"acc": 1})
        text = table_text(group="params.opt", column="metrics.acc", filter="metrics.acc > 0")
        groups = {row[2]: address for row, address in zip(rows(text), addresses(text), strict=True)}
        assert names(text_of(groups["it's"], headers=HTMX)) == ["in"]
        assert names(text_of(groups["none"], headers=HTMX)) == ["none"]

    def test_whose_condition_is_in_the_filter_unfold_without_it_twice(self) -> None:
        run_with_data("in", params={"opt": "adam"})
        run_with_data("out", params={"opt": "sgd"})
        (address,) = addresses(table_text(group="params.opt", filter="params.opt = 'adam'"))
        assert address.count("params.opt%20%3D") == 1
        assert names(text_of(address, headers=HTMX)) == ["in"]

    @pytest.mark.parametrize("query", ["filter=metrics.acc+%3E", "column=nonsense"])
    def test_with_an_address_that_cannot_be_read_are_not_there(self, query: str) -> None:
        text_of(f"/runs/group/?{query}", status=404, headers=HTMX)

    def test_gpu_hours_are_averaged_and_a_group_without_a_number_has_none(self) -> None:
        for name, opt, hours in (("a", "adam", 1.0), ("b", "adam", 3.0), ("c", "sgd", None)):
            run = run_with_data(name, params={"opt": opt})
            if hours is not None:
                UsageEntry.objects.create(
                    workspace=run.workspace,
                    run=run,
                    run_number=run.number,
                    attempt=1,
                    month="2025-11-01",
                    gpu_seconds=hours * 3600,
                )
        text = table_text(group="params.opt", column=["gpu_hours", "metrics.acc"], order="gpu_hours DESC")
        assert [row[1:5] for row in rows(text)] == [["2", "adam", "2.0 ± 1.4", ""], ["1", "sgd", "", ""]]

    def test_values_longer_than_the_index_unfold_too(self) -> None:
        run_with_data("long", params={"opt": "50%_" * 60})
        (address,) = addresses(table_text(group="params.opt"))
        assert names(text_of(address, headers=HTMX)) == ["long"]

    def test_durations_are_averaged_as_lengths_of_time(self) -> None:
        now = timezone.now()
        for minutes in (10, 20):
            started = now - timedelta(minutes=minutes)
            run_with_data(
                "a", params={"lr": "1"}, started_at=started, finished_at=now, state=RunState.COMPLETED
            )
        assert rows(table_text(group="params.lr", column="duration"))[0][3] == "15 min 0 s ± 7 min 4 s"


class TestWriting:
    def test_a_mean_is_as_exact_as_its_spread_allows(self) -> None:
        assert spread_figure(0.91234, 0.0043) == "0.9123 ± 0.0043"
        assert spread_figure(123.456, 7.9) == "123.5 ± 7.9"
        assert spread_figure(1.0, 0.0) == "1 ± 0"
        assert spread_figure(1e-7, 2e-9) == "1e-07 ± 2e-09"
        assert spread_figure(5.0, None) == "5"
        assert spread_figure(math.inf, math.nan) == "∞"

    def test_a_spread_needs_two(self) -> None:
        assert mean_and_spread([2.0]) == (2.0, None)
        assert mean_and_spread([1.0, 3.0]) == (2.0, math.sqrt(2))

    @pytest.mark.parametrize(("value", "text"), [
        (0.0, "0"), (0.91234, "0.9123"), (1.2e-5, "1.2e-05"), (123456.7, "123457"), (1e9, "1e+09"), (-0.5,
            "-0.5"),
        (math.nan, "NaN"), (-math.inf, "−∞"), (1.0, "1"),
    ])  # fmt: skip
    def test_a_figure_has_four_digits_that_say_something(self, value: float, text: str) -> None:
        assert format_number(value) == text


def addresses(text: str) -> list[str]:
    return [part.split('"')[0].replace("&amp;", "&") for part in text.split('data-unfold="')[1:]]
