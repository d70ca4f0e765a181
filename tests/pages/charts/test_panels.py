"""Panels that people arrange, in a real browser on a real hub."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.journeys.test_strangers import browser_of
from tests.pages.accessibility.axe import faults
from tests.pages.charts.arranged import (
    act,
    arrange,
    drag_over,
    lines,
    opened,
    panel,
    stored,
    texts_in,
    titles,
    x_axis,
)
from tests.pages.charts.curves import address
from tests.pages.logs.training_log import Logged, begin, make_experiment

pytestmark = pytest.mark.browser
STEPS = 100
OVER_EPOCH = {"metrics": ["train/loss", "eval/loss"], "x": "metrics.epoch", "width": 2}
RATE = {"metrics": ["lr"], "title": "Rate"}
LOSS = {"metrics": ["train/loss"]}


@pytest.fixture
def tab(page: Any) -> Iterator[Any]:
    """A page on which nothing may fail."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


@pytest.fixture(scope="module")
def experiment(hub: Hub) -> str:
    return make_experiment(hub, "arranged")


@pytest.fixture(scope="module")
def runs(hub: Hub, experiment: str) -> list[Logged]:
    """Two runs of ten steps an epoch; they have ended."""
    found = []
    for place in range(2):
        run = begin(hub, f"digits {place}", experiment=experiment)
        run.log("train/loss", [3 * math.exp(-step / 30) + place for step in range(STEPS)])
        run.log("eval/loss", [3.5 * math.exp(-step / 30) + place for step in range(STEPS)])
        run.log("epoch", [step / 10 for step in range(STEPS)])
        run.log("lr", [0.1 * (1 - step / STEPS) for step in range(STEPS)])
        run.end()
        found.append(run)
    return found


@pytest.fixture(autouse=True)
def _no_layout(hub: Hub, experiment: str) -> Iterator[None]:
    yield
    hub.client().delete(f"/api/v1/experiments/{experiment}/panels/").raise_for_status()


class TestArranging:
    def test_a_panel_over_another_metric_is_made_in_the_dialog_and_there_after_a_reload(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        opened(tab, runs[0])
        tab.get_by_role("button", name="Add panel").click()
        dialog = tab.get_by_role("dialog", name="Add panel")
        dialog.get_by_role("button", name="Save").click()
        dialog.get_by_text("Choose at least one metric.").wait_for()
        dialog.get_by_label("Find metrics by name").fill("loss")
        assert dialog.locator("[data-part=metrics] label:visible").all_inner_texts() == [
            "eval/loss",
            "train/loss",
        ]
        for key in ("eval/loss", "train/loss"):
            dialog.get_by_label(key).check()
        dialog.get_by_label("X axis").select_option("metrics.epoch")
        dialog.get_by_label("2", exact=True).check()
        assert faults(tab) == []
        dialog.get_by_role("button", name="Save").click()
        dialog.wait_for(state="detached")
        title = "eval/loss, train/loss over epoch"
        for _ in range(2):
            assert titles(tab) == [title]
            first, second = lines(panel(tab, title))
            assert (first["x"][:3], first["x"][-1]) == ([0, 0.1, 0.2], 9.9)
            assert (first["y"][0], second["y"][0]) == (3.5, 3.0)
            assert first["color"] != second["color"]
            assert texts_in(panel(tab, title))[:2] == ["epoch", "loss"]
            assert panel(tab, title).locator(".ch-keys").inner_text().split() == ["eval/loss", "train/loss"]
            tab.reload()
            panel(tab, title).wait_for()
        (made,) = stored(hub, experiment)
        assert (made["metrics"], made["x"], made["width"]) == (
            ["eval/loss", "train/loss"],
            "metrics.epoch",
            2,
        )

    def test_a_chart_becomes_a_panel_as_it_is_shown(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        opened(tab, runs[0], "?axis=relative&logy=1")
        tab.locator(".cv-chart[data-key=lr]").get_by_role("button", name="Add to the panels").click()
        eventually(lambda: titles(tab) == ["lr"])
        (made,) = eventually(lambda: stored(hub, experiment))
        assert (made["x"], made["log_y"], made["metrics"]) == ("relative", True, ["lr"])

    def test_panels_are_moved_with_the_arrow_keys_and_keep_the_focus(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, OVER_EPOCH, RATE, LOSS)
        opened(tab, runs[0])
        tab.get_by_label("Move Rate").focus()
        tab.keyboard.press("ArrowRight")
        eventually(lambda: titles(tab)[1:] == ["train/loss", "Rate"])
        assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "Move Rate"
        assert tab.locator("[data-part=board-note]").inner_text() == "Rate is now 3 of 3."
        for _ in range(3):
            tab.keyboard.press("ArrowLeft")
        eventually(lambda: titles(tab)[0] == "Rate")
        expected = [["lr"], OVER_EPOCH["metrics"], ["train/loss"]]
        eventually(lambda: [item["metrics"] for item in stored(hub, experiment)] == expected)

    def test_a_panel_is_dragged_to_its_place(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, RATE, LOSS)
        opened(tab, runs[0])
        tab.get_by_label("Move train/loss").hover()
        tab.mouse.down()
        box = panel(tab, "Rate").bounding_box()
        tab.mouse.move(box["x"] + 40, box["y"] + 60, steps=5)
        tab.locator(".cv-drop-before").wait_for()
        tab.mouse.up()
        eventually(lambda: titles(tab) == ["train/loss", "Rate"])
        eventually(lambda: stored(hub, experiment)[0]["metrics"] == ["train/loss"])

    def test_a_panel_is_pinned_widened_changed_and_removed_by_its_menu(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, LOSS, RATE)
        opened(tab, runs[0])
        act(tab, "Rate", "Pin to the top")
        eventually(lambda: titles(tab) == ["Rate", "train/loss"])
        act(tab, "Rate", "3")
        eventually(lambda: "cv-columns-3" in panel(tab, "Rate").get_attribute("class"))
        act(tab, "Rate", "Edit")
        dialog = tab.get_by_role("dialog", name="Edit Rate")
        dialog.get_by_label("Title").fill("Learning rate")
        dialog.get_by_label("Log y").check()
        dialog.get_by_role("button", name="Save").click()
        eventually(lambda: titles(tab) == ["Learning rate", "train/loss"])
        names = ("title", "log_y", "is_pinned", "width")
        expected = ["Learning rate", True, True, 3]
        eventually(lambda: [stored(hub, experiment)[0][name] for name in names] == expected)
        act(tab, "train/loss", "Remove")
        eventually(lambda: titles(tab) == ["Learning rate"])
        eventually(lambda: len(stored(hub, experiment)) == 1)

    def test_reset_goes_back_to_the_automatic_charts(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, LOSS, RATE)
        opened(tab, runs[0])
        tab.get_by_role("button", name="Reset", exact=True).click()
        tab.get_by_role("button", name="Remove the panels").click()
        eventually(lambda: titles(tab) == [])
        assert tab.locator(".cv-board").is_hidden()
        eventually(lambda: stored(hub, experiment) == [])
        assert tab.locator(".cv-chart").count() == 4

    def test_a_change_of_somebody_else_is_shown_instead_of_overwritten(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        opened(tab, runs[0])
        arrange(hub, experiment, RATE)
        tab.locator(".cv-chart[data-key=epoch]").get_by_role("button", name="Add to the panels").click()
        tab.get_by_text("Somebody has changed these panels").wait_for()
        assert titles(tab) == ["Rate"]

    def test_a_viewer_sees_the_panels_and_can_change_nothing(
        self, browser: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, OVER_EPOCH, RATE)
        name = hub.cookie("sessionid")
        with browser_of(hub, "vera", "Role.VIEWER") as viewer:
            key = viewer.cookies[name]
        context = browser.new_context(base_url=hub.browser_url, viewport={"width": 1440, "height": 900})
        context.add_cookies([{"name": name, "value": key, "url": hub.browser_url}])
        tab = opened(context.new_page(), runs[0])
        assert titles(tab) == ["train/loss, eval/loss over epoch", "Rate"]
        assert lines(panel(tab, "Rate"))
        for text in ("Add panel", "Reset"):
            assert tab.get_by_role("button", name=text, exact=True).count() == 0
        assert tab.locator(".cv-handle, .cv-menu").count() == 0
        context.close()


class TestSpan:
    def test_a_picked_span_is_shared_by_charts_with_the_same_axis_and_by_a_link(
        self, tab: Any, browser: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, OVER_EPOCH, {**RATE, "x": "metrics.epoch"}, {**LOSS, "x": "step"})
        opened(tab, runs[0])
        drag_over(tab, panel(tab, "over epoch"), 0.25, 0.5)
        span = eventually(lambda: x_axis(panel(tab, "Rate")) if x_axis(panel(tab, "Rate"))[0] > 1 else None)
        assert span == pytest.approx((9.9 * 0.25, 9.9 * 0.5), abs=0.2)
        assert x_axis(panel(tab, "over epoch")) == span
        assert x_axis(tab.locator(".cv-panel").nth(2)) == (0, STEPS - 1)
        drag_over(tab, tab.locator(".cv-panel").nth(2), 0.5, 0.75)
        lr = tab.locator(".cv-chart[data-key=lr]")
        lr.scroll_into_view_if_needed()
        steps = eventually(lambda: x_axis(lr) if x_axis(lr)[0] > 0 else None)
        assert steps == pytest.approx((49, 75), abs=1.5)
        assert "span=" in address(tab)
        assert ":metrics.epoch" in address(tab)
        fresh = browser.new_context(
            storage_state=tab.context.storage_state(), viewport={"width": 1440, "height": 900}
        )
        other = fresh.new_page()
        other.goto(address(tab))
        assert x_axis(panel(other, "Rate")) == span
        assert x_axis(other.locator(".cv-panel").nth(2)) == steps
        fresh.close()
        panel(tab, "Rate").locator(".ch-plot").dblclick()
        eventually(lambda: x_axis(panel(tab, "over epoch")) == (0, 9.9))
        assert "span=" not in address(tab)
        assert x_axis(tab.locator(".cv-panel").nth(2)) == steps
        tab.get_by_role("button", name="Reset zoom").click()
        eventually(lambda: x_axis(tab.locator(".cv-panel").nth(2)) == (0, STEPS - 1))


class TestEvents:
    def test_are_marked_on_charts_over_time_and_told_under_the_cross_hair(
        self, tab: Any, runs: list[Logged]
    ) -> None:
        opened(tab, runs[0], "?axis=relative&q=lr")
        lr = tab.locator(".cv-chart[data-key=lr]")
        shapes = "element => element.querySelector('.ch-drawing').layout.shapes.length"
        eventually(lambda: lr.evaluate(shapes) >= 1, what="events are marked")
        assert texts_in(lr)[0] == "Time since start"
        lr.locator(".ch-plot").focus()
        tab.keyboard.press("Home")
        eventually(lambda: "Running" in tab.locator(".ch-tip").inner_text())
        tab.get_by_role("button", name="Events").click()
        eventually(lambda: lr.evaluate(shapes) == 0)
        assert "events=0" in address(tab)


class TestComparison:
    def test_panels_hold_every_run_and_metric(
        self, tab: Any, hub: Hub, experiment: str, runs: list[Logged]
    ) -> None:
        arrange(hub, experiment, OVER_EPOCH)
        tab.goto(f"/compare/?runs={','.join(str(run.number) for run in runs)}")
        chart = tab.locator(".cv-panel").first
        drawn = lines(chart)
        assert [line["y"][0] for line in drawn] == [3.0, 3.5, 4.0, 4.5]
        # One colour for each run and one dash for each metric.
        assert [line["color"] for line in drawn[:2]] == [drawn[0]["color"]] * 2
        assert drawn[0]["color"] != drawn[2]["color"]
        assert [line["dash"] for line in drawn] == ["solid", "dash", "solid", "dash"]
        assert faults(tab) == []


def test_a_run_that_goes_on_moves_inside_a_panel(tab: Any, hub: Hub, experiment: str) -> None:
    arrange(hub, experiment, {"metrics": ["loss"], "x": "metrics.epoch", "title": "Live"})
    run = begin(hub, "live", experiment=experiment)
    run.log("loss", [3.0, 2.0])
    run.log("epoch", [0.0, 0.5])
    opened(tab, run)
    eventually(lambda: lines(panel(tab, "Live"))[0]["x"] == [0, 0.5])
    run.log("loss", [1.0], start=2)
    run.log("epoch", [1.0], start=2)
    eventually(lambda: lines(panel(tab, "Live"))[0]["x"] == [0, 0.5, 1.0], what="the panel has moved")
    assert lines(panel(tab, "Live"))[0]["y"] == [3.0, 2.0, 1.0]
    run.end()
