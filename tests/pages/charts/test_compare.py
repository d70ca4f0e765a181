"""Runs compared in a real browser on a real hub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.charts.curves import address, axes, chart, drawn
from tests.pages.logs.training_log import Logged, begin

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(page: Any) -> Iterator[Any]:
    """A page on which nothing may fail."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


@pytest.fixture(scope="module")
def runs(hub: Hub) -> list[Logged]:
    """Three runs of two learning rates; they have ended."""
    found = []
    for place, lr in enumerate(("0.1", "0.1", "0.5")):
        run = begin(hub, f"sweep {place}", {"lr": lr, "model": "mlp", "seed": str(place)})
        run.log("eval/loss", [3.0 + place, 2.0 + place, 1.0 + place])
        run.log("eval/accuracy", [0.1, 0.2, 0.9 - place / 10])
        run.end()
        found.append(run)
    return found


def opened(tab: Any, runs: list[Logged], query: str = "") -> Any:
    tab.goto(f"/compare/?runs={','.join(str(run.number) for run in runs)}{query}")
    tab.locator(".cm-run").first.wait_for()
    return tab


def numbers(tab: Any) -> list[str]:
    return [text.split()[0] for text in tab.locator(".cm-run > a.th-cut").all_inner_texts()]


class TestCurves:
    def test_lie_over_each_other_in_one_colour_per_run_all_over_the_page(
        self, tab: Any, runs: list[Logged]
    ) -> None:
        opened(tab, runs)
        lines = drawn(tab, "eval/loss")
        assert [line["y"] for line in lines] == [[3, 2, 1], [4, 3, 2], [5, 4, 3]]
        assert len({line["color"] for line in lines}) == 3
        assert [line["color"] for line in drawn(tab, "eval/accuracy")] == [line["color"] for line in lines]
        swatch = "element => getComputedStyle(element).getPropertyValue('--line')"
        style = "getComputedStyle(document.documentElement)"
        shown = tab.evaluate(f"[1, 2, 3].map((place) => {style}.getPropertyValue(`--th-chart-${{place}}`))")
        assert [tab.locator(".cm-run .ch-swatch").nth(place).evaluate(swatch) for place in range(3)] == shown
        assert [line["color"] for line in lines] == shown

    def test_a_run_is_hidden_and_shown_by_its_chip(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs)
        drawn(tab, "eval/loss")
        tab.locator(".ch-chip").nth(1).click()
        eventually(lambda: [line["y"][0] for line in drawn(tab, "eval/loss")] == [3, 5])
        assert f"hide={runs[1].number}" in address(tab)

    def test_seeds_are_drawn_as_their_mean_with_a_band(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs)
        with tab.expect_navigation():
            tab.get_by_label("What is drawn").select_option("params.lr")
        lines = drawn(tab, "eval/loss")
        assert [line["fill"] for line in lines] == ["toself", None, "toself", None]
        assert lines[1]["y"] == [3.5, 2.5, 1.5]
        assert tab.locator(".ch-chip").all_inner_texts() == ["lr = 0.1", "lr = 0.5"]


class TestDifferences:
    def test_are_highlighted_and_may_stand_alone(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs)
        table = tab.locator("[data-section=params] .cm-table")
        assert table.locator("tr.cm-differs > th").all_inner_texts() == ["lr", "seed"]
        assert table.locator(".cm-other").all_inner_texts() == ["0.5", "1", "2"]
        tab.get_by_label("Only differences").check()
        assert table.locator("tbody tr:visible > th").all_inner_texts() == ["lr", "seed"]
        assert "only=1" in address(tab)

    def test_tables_are_as_wide_as_the_page(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs[:2], "&sections=params,metrics,attributes")
        width = "element => element.getBoundingClientRect().width"
        tables = tab.locator(".cm-table").all()
        assert len(tables) >= 3
        page_width = tab.locator("[data-mount=compare]").evaluate(width)
        assert [table.evaluate(width) > 0.99 * page_width for table in tables] == [True] * len(tables)

    def test_the_best_value_is_marked_for_each_statistic(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs)
        row = tab.locator("[data-section=metrics] tbody tr", has_text="eval/loss")
        assert row.locator(".cm-best:visible").inner_text() == "1"
        tab.locator("[data-statistic=max]").click()
        assert row.locator(".cm-best:visible").inner_text() == "3"
        assert "stat=max" in address(tab)


class TestChoosing:
    def test_runs_are_added_by_search_and_taken_out_and_the_rest_stays(
        self, tab: Any, runs: list[Logged]
    ) -> None:
        opened(tab, runs[:1], "&smoothing=0.5&only=1")
        tab.get_by_text("Add run").click()
        tab.get_by_label("Find a run to add").fill(f"sweep {2}")
        with tab.expect_navigation():
            tab.locator(f"[data-add-run='{runs[2].number}']").click()
        assert numbers(tab) == [str(runs[0].number), str(runs[2].number)]
        assert "smoothing=0.5" in address(tab)
        with tab.expect_navigation():
            tab.get_by_label(f"Remove run {runs[0].number} from the comparison").click()
        assert numbers(tab) == [str(runs[2].number)]
        assert "only=1" in address(tab)

    def test_a_link_shows_a_colleague_the_same_view(self, tab: Any, browser: Any, runs: list[Logged]) -> None:
        opened(tab, runs)
        tab.locator("[data-part=logy]").click()
        tab.locator("[data-axis=relative]").click()
        tab.locator(".ch-chip").nth(2).click()
        tab.locator("[data-section=metrics] > summary").click()
        tab.locator("[data-section=attributes] > summary").click()
        eventually(lambda: "sections=curves,params,attributes" in address(tab))
        expected = axes(tab, "eval/loss")
        fresh = browser.new_context(
            storage_state=tab.context.storage_state(), viewport={"width": 1440, "height": 900}
        )
        other = fresh.new_page()
        other.goto(address(tab))
        assert axes(other, "eval/loss") == expected
        assert [line["y"][0] for line in drawn(other, "eval/loss")] == [3, 4]
        open_ones = other.locator(".cm-section[open] > summary h2").all_inner_texts()
        assert open_ones == ["Curves", "Parameters", "Attributes and tags"]
        fresh.close()


class TestRelations:
    def test_params_and_metrics_become_axes(self, tab: Any, runs: list[Logged]) -> None:
        opened(tab, runs, "&sections=relations")
        tab.locator("[data-part=parallel] .parcoords").first.wait_for()
        labels = tab.locator("[data-part=parallel] .axis-title").all_text_contents()
        assert labels == ["lr", "seed", "eval/accuracy", "eval/loss"]
        tab.locator("[data-part=sy]").select_option("metrics.eval/loss")
        points = "element => element.data.map(({ x, y }) => [x[0], y[0]])"
        eventually(
            lambda: tab.locator("[data-part=scatter]").evaluate(points) == [[0.1, 1], [0.1, 2], [0.5, 3]]
        )
        assert "sy=metrics.eval" in address(tab)

    def test_the_large_library_is_fetched_only_when_it_is_needed(self, tab: Any, runs: list[Logged]) -> None:
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        opened(tab, runs)
        drawn(tab, "eval/loss")
        assert not [url for url in asked if url.endswith("vendor/plotly-strict-4.1.1.min.js")]
        tab.locator("[data-section=relations] > summary").click()
        tab.locator("[data-part=parallel] .parcoords").first.wait_for()
        assert [url for url in asked if url.endswith("vendor/plotly-strict-4.1.1.min.js")]


def test_a_run_that_goes_on_moves_while_it_is_compared(tab: Any, hub: Hub, runs: list[Logged]) -> None:
    run = begin(hub, "still going", {"lr": "1"})
    run.log("eval/loss", [9.0])
    opened(tab, [runs[0], run])
    eventually(lambda: [line["y"] for line in drawn(tab, "eval/loss")] == [[3, 2, 1], [9]])
    run.log("eval/loss", [8.0], start=1)
    eventually(lambda: [line["y"] for line in drawn(tab, "eval/loss")] == [[3, 2, 1], [9, 8]])
    chart(tab, "eval/loss").scroll_into_view_if_needed()
    run.end()
