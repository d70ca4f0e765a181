"""The tab of a run's page that shows what it logs, in a real browser on a real hub."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.charts.curves import address, axes, chart, drag, drawn
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
def logged(hub: Hub) -> Logged:
    """A run that has ended: 300 steps of a loss, fewer of others."""
    run = begin(hub, "digits")
    run.log("train/loss", [3 * math.exp(-step / 50) + 0.1 * math.sin(step) + 0.2 for step in range(300)])
    run.log("train/accuracy", [1 - math.exp(-step / 40) for step in range(300)])
    run.log("eval/loss", [1.0, 0.5])
    run.log("broken", [1.0, 2.0, "NaN", 4.0, "Infinity", 3.0])
    run.end()
    return run


def opened(tab: Any, run: Logged, query: str = "") -> Any:
    tab.goto(f"/runs/{run.number}/metrics/{query}")
    tab.wait_for_selector(".cv-chart .main-svg")
    return tab


class TestLive:
    def test_the_first_point_turns_the_lesson_into_a_chart_and_later_ones_move_it(
        self, tab: Any, hub: Hub
    ) -> None:
        run = begin(hub, "live")
        tab.goto(f"/runs/{run.number}/metrics/")
        tab.get_by_text("No metrics yet").wait_for()
        run.log("loss", [3.0, 2.0])
        eventually(lambda: drawn(tab, "loss")[0]["y"] == [3.0, 2.0], what="the first points are drawn")
        assert tab.get_by_text("No metrics yet").is_hidden()
        run.log("loss", [1.0, 0.5], start=2)
        eventually(lambda: drawn(tab, "loss")[0]["y"] == [3.0, 2.0, 1.0, 0.5], what="the curve has moved")
        eventually(
            lambda: "0.5" in chart(tab, "loss").locator(".ch-read").inner_text(),
            what="the latest value is told",
        )
        run.log("accuracy", [0.1])
        chart(tab, "accuracy").wait_for()
        run.end()

    def test_a_run_that_its_process_opens_besides_becomes_a_further_line(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "parent")
        run.log("loss", [3.0, 2.0])
        opened(tab, run)
        assert [line["y"] for line in drawn(tab, "loss")] == [[3.0, 2.0]]
        child = begin(hub, "fold 1", mlflow__parentRunId=run.id)
        child.log("loss", [5.0, 4.0])
        lines = [[3.0, 2.0], [5.0, 4.0]]
        eventually(
            lambda: [line["y"] for line in drawn(tab, "loss")] == lines, what="the child's line has come"
        )
        assert tab.locator(".ch-chip").all_inner_texts() == ["parent", "fold 1"]
        child.log("loss", [3.5], start=2)
        eventually(lambda: drawn(tab, "loss")[1]["y"] == [5.0, 4.0, 3.5], what="the child's line has moved")
        for ended in (child, run):
            ended.end()


class TestReading:
    def test_metrics_stand_in_groups_with_last_least_and_greatest_value(
        self, tab: Any, logged: Logged
    ) -> None:
        opened(tab, logged)
        assert tab.locator(".ch-group > summary").all_inner_texts() == ["Metrics1", "eval1", "train2"]
        assert chart(tab, "eval/loss").locator(".ch-read").inner_text().split() == ["0.5", "0.5", "…", "1"]

    def test_a_search_leaves_those_that_are_called_like_that(self, tab: Any, logged: Logged) -> None:
        opened(tab, logged).fill("[data-part=search]", "loss")
        eventually(lambda: tab.locator(".cv-chart").count() == 2)
        assert "q=loss" in address(tab)
        tab.fill("[data-part=search]", "nothing like it")
        tab.get_by_text("No metric name matches the filter.").wait_for()

    def test_what_is_no_number_is_marked_on_the_axis_and_breaks_the_line(
        self, tab: Any, logged: Logged
    ) -> None:
        line, marks = drawn(opened(tab, logged), "broken")
        assert line["y"] == [1.0, 2.0, None, 4.0, None, 3.0]
        assert (marks["x"], marks["yaxis"]) == ([2, 4], "y2")
        chart(tab, "broken").locator(".ch-plot").focus()
        for _ in range(80):
            tab.keyboard.press("ArrowLeft")
            if "NaN" in tab.locator(".ch-tip").inner_text() or "∞" in tab.locator(".ch-tip").inner_text():
                return
        pytest.fail("the marks are never told")

    def test_the_cross_hair_stands_at_the_same_step_on_every_chart(self, tab: Any, logged: Logged) -> None:
        opened(tab, logged, "?q=train")
        for key in ("train/loss", "train/accuracy"):
            drawn(tab, key)
        chart(tab, "train/loss").locator(".ch-plot").hover()
        eventually(lambda: tab.locator(".ch-cross:visible").count() == 2)
        assert "step 1" in tab.locator(".ch-tip strong").inner_text()

    def test_everything_is_there_as_a_table_too(self, tab: Any, logged: Logged) -> None:
        opened(tab, logged)
        row = chart(tab, "train/loss").locator(".ch-values tbody tr")
        row.wait_for(state="attached")
        tab.click("[data-part=table]")
        assert row.locator("td").all_inner_texts()[3:5] == ["299", "300"]


class TestShowing:
    def test_smoothing_lays_the_average_over_the_faint_line(self, tab: Any, logged: Logged) -> None:
        raw, average = drawn(opened(tab, logged, "?smoothing=0.9"), "train/loss")
        assert raw["color"].startswith("rgba")
        assert raw["width"] < average["width"]
        middle = slice(100, 200)
        spread = [max(line["y"][middle]) - min(line["y"][middle]) for line in (raw, average)]
        assert spread[1] < spread[0]
        tab.locator("[data-part=smoothing]").fill("0")
        eventually(lambda: len(drawn(tab, "train/loss")) == 1)
        assert "smoothing" not in address(tab)

    def test_both_axes_may_be_logarithmic(self, tab: Any, logged: Logged) -> None:
        opened(tab, logged)
        for name in ("logx", "logy"):
            tab.click(f"[data-part={name}]")
        eventually(lambda: (axes(tab, "train/loss")["x"], axes(tab, "train/loss")["y"]) == ("log", "log"))
        assert axes(tab, "train/loss")["range"][0] == pytest.approx(0)
        assert "logx=1&logy=1" in address(tab)

    def test_the_axis_may_be_time_or_the_time_since_the_run_began(self, tab: Any, logged: Logged) -> None:
        opened(tab, logged)
        tab.click("[data-axis=relative]")
        eventually(lambda: drawn(tab, "train/loss")[0]["x"][:3] == pytest.approx([0, 1, 2], abs=0.01))
        tab.click("[data-axis=time]")
        eventually(lambda: drawn(tab, "train/loss")[0]["x"][0] == pytest.approx(logged.began_ms / 1000))

    def test_a_link_shows_a_colleague_the_same(self, tab: Any, browser: Any, logged: Logged) -> None:
        opened(tab, logged)
        tab.click("[data-part=logy]")
        tab.fill("[data-part=search]", "train")
        chart(tab, "train/loss").locator(".cv-widen").click()
        drag(tab, "train/loss", 0.25, 0.5)
        eventually(lambda: "from=" in address(tab) and "q=train" in address(tab))
        expected = axes(tab, "train/loss")
        fresh = browser.new_context(
            storage_state=tab.context.storage_state(), viewport={"width": 1440, "height": 900}
        )
        other = fresh.new_page()
        other.goto(address(tab))
        assert axes(other, "train/loss") == expected
        assert other.locator(".cv-chart").count() == tab.locator(".cv-chart").count() == 2
        assert "cv-wide" in chart(other, "train/loss").get_attribute("class")
        fresh.close()


class TestAMillionPoints:
    @pytest.mark.slow
    def test_are_drawn_in_as_many_as_the_screen_has_and_zoomed_into_to_the_last_one(
        self, tab: Any, hub: Hub
    ) -> None:
        run = begin(hub, "long")
        peak = 777_777
        for start in range(0, 1_000_000, 50_000):
            steps = range(start, start + 50_000)
            run.log(
                "loss", (99.0 if step == peak else math.sin(step / 40_000) for step in steps), start=start
            )
        opened(tab, run, "?wide=loss")
        (line,) = drawn(tab, "loss")
        pixels = chart(tab, "loss").locator(".ch-plot").bounding_box()["width"]
        assert len(line["x"]) <= 4 * pixels
        assert line["y"][line["x"].index(peak)] == 99.0
        assert line["x"][-1] == 999_999

        drag(tab, "loss", 0.77, 0.79)
        for _ in range(2):
            low, high = eventually(lambda: _span_if_zoomed(tab))
            share = (peak - low) / (high - low)
            drag(tab, "loss", max(0, share - 0.02), min(1, share + 0.02))
            _wait_for_another_span(tab, (low, high))
        low, high = eventually(lambda: _span_if_zoomed(tab))
        assert high - low < 100
        eventually(
            lambda: (
                [x for x in drawn(tab, "loss")[0]["x"] if low <= x <= high]
                == list(range(math.ceil(low), int(high) + 1))
            ),
            what="every single point is drawn",
        )
        chart(tab, "loss").locator(".ch-plot").dblclick()
        eventually(lambda: axes(tab, "loss")["range"] == [0, 999_999], what="the whole span is back")
        run.end()


def _wait_for_another_span(tab: Any, before: tuple[float, float]) -> None:
    eventually(lambda: _span_if_zoomed(tab) not in (None, before))


def _span_if_zoomed(tab: Any) -> tuple[float, float] | None:
    low, high = axes(tab, "loss")["range"]
    return None if high - low > 900_000 else (low, high)
