"""Charts in a real browser, with numbers that the test decides."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.hub import eventually
from tests.pages.charts.chart_page import FakeHub, fake_hub, usual
from tests.pages.charts.conftest import WINDOW

pytestmark = pytest.mark.browser
DRAWN = ".ch-panel:not([hidden]) .ch-drawing .main-svg"


@pytest.fixture(scope="module")
def served_hub() -> Iterator[FakeHub]:
    with fake_hub() as served:
        yield served


@pytest.fixture
def hub(served_hub: FakeHub) -> FakeHub:
    """The same for all tests: a new one compresses the scripts anew, and the browser asks for them again."""
    served_hub.reset(gpus=4)
    return served_hub


@pytest.fixture(scope="module")
def window(browser: Any) -> Iterator[Any]:
    made = browser.new_context(viewport=WINDOW)
    yield made
    made.close()


@pytest.fixture
def tab(window: Any) -> Iterator[Any]:
    page = window.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    assert page.errors == []
    page.evaluate("localStorage.clear()")
    page.close()


def opened(tab: Any, hub: FakeHub, query: str = "") -> Any:
    tab.goto(hub.address + query)
    tab.wait_for_selector(DRAWN)
    return tab


def panel(tab: Any, label: str) -> Any:
    return tab.locator(f".ch-panel:has(.ch-title:text-is('{label}'))")


def traces(tab: Any, label: str) -> list[dict[str, Any]]:
    """Of the lines that are drawn: name of the colour, values."""
    code = """element => element.querySelector('.ch-drawing').data.map(({ x, y, line }) => (
        { x: [...x], y: [...y], color: line.color }))"""
    return list(panel(tab, label).evaluate(code))


def shown(tab: Any, label: str) -> float:
    """Seconds on the axis."""
    start, end = panel(tab, label).evaluate(
        "element => element.querySelector('.ch-drawing').layout.xaxis.range"
    )
    return float(end - start)


class TestDrawing:
    def test_each_metric_that_has_numbers_gets_a_chart_and_no_other(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        assert panel(tab, "Utilisation").is_visible()
        assert panel(tab, "Slowed by heat").is_hidden()
        assert len(traces(tab, "Utilisation")) == 4

    def test_what_was_not_measured_is_a_gap(self, tab: Any, hub: FakeHub) -> None:
        now = time.time()
        hub.gaps = [(now - 2400, now - 1800)]
        line = traces(opened(tab, hub), "Utilisation")[0]
        unknown = [at for at, value in zip(line["x"], line["y"], strict=True) if value is None]
        assert now - 2411 <= min(unknown) <= max(unknown) <= now - 1790
        path = panel(tab, "Utilisation").locator(".scatterlayer > .trace path").first.get_attribute("d")
        assert path.count("M") == 2, "two pieces"

    def test_the_axis_begins_at_the_first_sample_of_a_machine_that_was_added_since(
        self, tab: Any, hub: FakeHub
    ) -> None:
        now = time.time()
        hub.added_at = datetime.fromtimestamp(now - 1300, UTC)
        hub.gaps = [(0, now - 1200), (now - 800, now - 600)]
        opened(tab, hub)
        assert 1150 <= shown(tab, "Utilisation") <= 1250
        assert tab.locator("[data-part=begin]").inner_text().startswith("Begins at the first sample, ")
        line = traces(tab, "Utilisation")[0]
        assert None in line["y"], "a gap behind it stays one"
        assert any(float(query["from"]) > now - 1260 for query in hub.asked), "fetched in finer points"
        tab.click("button[value='15m']")
        eventually(lambda: shown(tab, "Utilisation") == 900)
        assert tab.locator("[data-part=begin]").is_hidden()

    def test_the_axis_of_a_machine_that_was_there_before_is_that_of_the_span(
        self, tab: Any, hub: FakeHub
    ) -> None:
        now = time.time()
        hub.added_at = datetime.fromtimestamp(now - 86_400, UTC)
        hub.gaps = [(0, now - 1200)]
        assert shown(opened(tab, hub), "Utilisation") == 3600
        assert tab.locator("[data-part=begin]").is_hidden()

    def test_a_gpu_has_one_colour_on_all_charts_and_no_two_the_same(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        colors = [line["color"] for line in traces(tab, "Utilisation")]
        assert len(set(colors)) == 4
        assert [line["color"] for line in traces(tab, "Temperature")] == colors

    def test_units_stand_on_the_axis_as_people_say_them(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        assert "GiB" in panel(tab, "Memory used").locator(".ytick").all_text_contents()[-1]
        assert panel(tab, "Utilisation").locator(".ytick").all_text_contents()[0].strip() == "0"

    def test_a_change_of_theme_changes_the_lines(self, tab: Any, hub: FakeHub) -> None:
        before = traces(opened(tab, hub), "Utilisation")[1]["color"]
        tab.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
        eventually(lambda: traces(tab, "Utilisation")[1]["color"] != before, what="the theme's colours")

    def test_says_the_same_as_a_table(self, tab: Any, hub: FakeHub) -> None:
        hub.curve = lambda metric, index, at: (
            50.0 + index if metric == "utilization_pct" else usual(metric, index, at)
        )
        opened(tab, hub).click("[data-part=table]")
        rows = panel(tab, "Utilisation").locator("tbody tr")
        assert rows.first.inner_text().split("\t") == ["GPU 0", "50 %", "50 %", "52 %"]
        assert "4 lines" in panel(tab, "Utilisation").locator(".ch-plot").get_attribute("aria-label")

    def test_a_refusal_is_told_in_the_hub_s_words(self, tab: Any, hub: FakeHub) -> None:
        hub.refuse = "from: must lie before `to`"
        tab.goto(hub.address)
        tab.wait_for_selector(".ch-note:text('must lie before')")

    def test_sixteen_gpus_stay_apart(self, tab: Any, hub: FakeHub) -> None:
        hub.reset(gpus=16)
        opened(tab, hub)
        assert tab.locator(".ch-chip").count() == 16
        code = "all => all.map((mark) => mark.className + mark.style.cssText)"
        looks = tab.locator(".ch-chip .ch-swatch").evaluate_all(code)
        assert len(set(looks)) == 16


class TestLegend:
    def test_hides_a_gpu_on_every_chart_and_brings_it_back(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        chip = tab.locator(".ch-chip", has_text="GPU 1")
        chip.focus()
        tab.keyboard.press("Enter")
        eventually(lambda: len(traces(tab, "Utilisation")) == 6, what="three lines, now with their maxima")
        assert chip.get_attribute("aria-pressed") == "false"
        tab.keyboard.press("Enter")
        eventually(lambda: len(traces(tab, "Utilisation")) == 4, what="all four again")

    def test_a_double_click_shows_one_alone(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub).locator(".ch-chip", has_text="GPU 2").dblclick()
        pressed = "all => all.map((chip) => chip.getAttribute('aria-pressed'))"
        assert tab.locator(".ch-chip").evaluate_all(pressed) == ["false", "false", "true", "false"]


class TestPointer:
    def test_the_cross_hair_goes_in_step_across_all_charts(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        panel(tab, "Power").locator(".ch-plot").hover(position={"x": 200, "y": 60})
        tab.wait_for_selector(".ch-tip:not([hidden])")
        crosses = tab.locator(".ch-panel:not([hidden]) .ch-cross:not([hidden])")
        places = crosses.evaluate_all("all => all.map((cross) => cross.style.transform)")
        assert len(places) >= 5
        assert len(set(places)) == 1
        assert tab.locator(".ch-tip li").count() == 4

    def test_works_by_keyboard_and_speaks(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        panel(tab, "Power").locator(".ch-plot").focus()
        tab.keyboard.press("ArrowLeft")
        eventually(
            lambda: "GPU 3" in tab.locator(".ch [role=status].th-off").inner_text(),
            what="the values are said",
        )
        tab.keyboard.press("Escape")
        assert tab.locator(".ch-tip").is_hidden()

    def test_dragging_zooms_all_charts_and_the_way_back_is_the_browser_s(
        self, tab: Any, hub: FakeHub
    ) -> None:
        opened(tab, hub)
        box = panel(tab, "Power").locator(".ch-plot").bounding_box()
        tab.mouse.move(box["x"] + 150, box["y"] + 60)
        tab.mouse.down()
        tab.mouse.move(box["x"] + 200, box["y"] + 60, steps=4)
        tab.mouse.up()
        tab.wait_for_url("**from=*to=*")
        eventually(lambda: shown(tab, "Utilisation") == shown(tab, "Power") < 1200, what="both are zoomed")
        tab.go_back()
        eventually(lambda: round(shown(tab, "Power")) == 3600, what="an hour again")


class TestRange:
    def test_a_choice_stays_in_the_address_and_asks_for_as_many_points_as_pixels(
        self, tab: Any, hub: FakeHub
    ) -> None:
        opened(tab, hub).click(".ch-presets button:text-is('24h')")
        tab.wait_for_url("**?range=24h")
        asked = eventually(
            lambda: next((q for q in hub.asked if float(q["to"]) - float(q["from"]) > 86_000), None)
        )
        assert 300 <= int(asked["points"]) <= 800
        assert "range=24h" in tab.url

    def test_an_address_shows_a_colleague_the_same(self, tab: Any, hub: FakeHub) -> None:
        until = int(time.time()) - 7200
        opened(tab, hub, f"?from={until - 1800}&to={until}")
        # A request of the page before may still have come.
        wanted = (str(until - 1800), str(until))
        eventually(lambda: wanted in {(query["from"], query["to"]) for query in hub.asked})
        assert tab.locator("[data-follow]").get_attribute("aria-pressed") == "false"
        assert hub.sockets == [], "nobody follows what has passed"

    def test_the_download_holds_what_is_shown(self, tab: Any, hub: FakeHub) -> None:
        address = opened(tab, hub, "?from=1000&to=5000").locator("[data-part=csv]").get_attribute("href")
        assert "from=1000&to=5000" in address
        assert address.endswith("as=csv")


class TestLive:
    def test_samples_move_the_right_end(self, tab: Any, hub: FakeHub) -> None:
        hub.curve = lambda metric, index, at: None if at > time.time() - 30 else usual(metric, index, at)
        opened(tab, hub)
        eventually(lambda: hub.sockets, what="the page listens")
        at = int(time.time())
        hub.sample(at, utilization_pct=77.0, power_w=None)
        eventually(lambda: traces(tab, "Utilisation")[0]["y"][-1] == 77.0, what="the sample is drawn")
        assert traces(tab, "Power")[0]["y"][-1] is None, "unknown is not 0"

    def test_a_chart_that_is_fetched_later_has_the_samples_from_before(self, tab: Any, hub: FakeHub) -> None:
        began = time.time()
        hub.curve = lambda metric, index, at: None if at > began - 30 else usual(metric, index, at)
        opened(tab, hub)
        eventually(lambda: hub.sockets, what="the page listens")
        for second in range(3):
            hub.sample(int(began) + second * 20, utilization_pct=50.0 + second)
        hub.say({"type": "hint"})
        eventually(
            lambda: 52.0 in traces(tab, "Utilisation")[0]["y"],
            what="history, fetched anew, goes on with them",
        )

    def test_standing_still_stops_listening_and_keeps_the_time(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        eventually(lambda: hub.sockets, what="the page listens")
        tab.click("[data-follow]")
        tab.wait_for_url("**from=*to=*")
        eventually(lambda: not hub.sockets, what="nobody listens")
        tab.click("[data-follow]")
        tab.wait_for_url("**range=1h")

    def test_after_a_loss_history_is_fetched_again(self, tab: Any, hub: FakeHub) -> None:
        opened(tab, hub)
        eventually(lambda: hub.sockets, what="the page listens")
        before = len(hub.asked)
        hub.say({"type": "hint"})
        eventually(lambda: len(hub.asked) > before, what="asked again")
