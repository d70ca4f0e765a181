"""What was logged by step, in a real browser on a real hub: on a run's page, live, and in a comparison."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin
from tests.runs import submit, told, wait_for
from tests.tracking.events.files import NAME, event, event_file, histogram_of
from tests.tracking.media.media_files import png, sound
from tracking.artifacts.previews.tables import MAX_ROWS

pytestmark = pytest.mark.browser
ID = "3f2a9c1e-6d0b-4b43-9a3c-2f5f0a1b7c11"
NATURAL_WIDTH = "image => image.complete ? image.naturalWidth : 0"


@pytest.fixture
def tab(page: Any) -> Iterator[Any]:
    """A page on which nothing may fail."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


def log_image(run: Logged, step: int, width: int) -> None:
    """Under the name that MLflow's client gives it."""
    run.put(f"images/eval~dogs+step+{step}+timestamp+{run.began_ms + step}+{ID}.png", png(width))


@pytest.fixture(scope="module")
def runs(hub: Hub) -> list[Logged]:
    """Two runs with images at steps 0, 10 and 20, whose widths tell run and step; the first with a sound."""
    made = []
    for place in (1, 2):
        run = begin(hub, f"paints {place}")
        for step in (0, 10, 20):
            log_image(run, step, 100 * place + step)
        made.append(run)
    made[0].put("speech/step_10.wav", sound())
    return made


def widths(tab: Any) -> list[int]:
    """The widths of the images that are shown, once all of them are loaded."""
    images = tab.locator(".md img:visible")

    def loaded() -> list[int] | None:
        found = [image.evaluate(NATURAL_WIDTH) for image in images.all()]
        return found if found and all(found) else None

    return list(eventually(loaded, 20, "the images are loaded"))


def choose(tab: Any, index: int) -> None:
    """Moves the slider to the step with this index, as the keyboard does."""
    slider = tab.get_by_label("Step", exact=True)
    slider.focus()
    slider.press("Home")
    for _ in range(index):
        slider.press("ArrowRight")


# Scripts of the page run once all of it is parsed, which is later.
MOVED_EARLY = """new MutationObserver((changes, observer) => {
  const slider = document.getElementById("media-step");
  if (!slider) return;
  observer.disconnect();
  slider.value = 1;
}).observe(document, { childList: true, subtree: true });"""


class TestRun:
    def test_shows_the_newest_image_and_by_the_slider_earlier_ones(
        self, tab: Any, runs: list[Logged]
    ) -> None:
        tab.goto(f"/runs/{runs[0].number}/")
        tab.get_by_role("link", name="Media").click()
        assert widths(tab) == [120]
        choose(tab, 1)
        eventually(lambda: widths(tab) == [110], 20)
        assert tab.locator(".md img").get_attribute("alt") == "eval/dogs at step 10"
        assert tab.get_by_label("Step", exact=True).get_attribute("aria-valuetext") == "10"
        tab.reload()
        eventually(lambda: widths(tab) == [110], 20, "the step is in the address")

    def test_shows_the_step_of_a_slider_that_was_moved_before_the_script_ran(
        self, tab: Any, runs: list[Logged]
    ) -> None:
        tab.add_init_script(MOVED_EARLY)
        tab.goto(f"/runs/{runs[0].number}/media/")
        eventually(lambda: widths(tab) == [110], 20)
        assert tab.url.endswith("media-step=10")

    def test_leads_to_the_file(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/runs/{runs[0].number}/media/?media-step=10")
        tab.locator(".md a[data-part=page]").click()
        image = tab.locator(".ar-image img")
        # It stands in the page, and has a place there, before its bytes are here.
        eventually(lambda: image.evaluate(NATURAL_WIDTH), 20, "the image is loaded")
        assert image.evaluate(NATURAL_WIDTH) == 110

    def test_plays_a_sound_and_says_when_there_is_none_yet(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/runs/{runs[0].number}/media/")
        audio = tab.locator(".md audio")
        assert audio.evaluate("async sound => { await sound.play(); return sound.duration }") == 1
        choose(tab, 0)
        assert tab.locator(".md-none:visible").inner_text() == "Nothing up to this step"
        assert not audio.is_visible()

    def test_follows_a_run_that_goes_on(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "goes on")
        log_image(run, 1, 31)
        tab.goto(f"/runs/{run.number}/media/")
        assert widths(tab) == [31]
        log_image(run, 2, 32)
        eventually(lambda: widths(tab) == [32], 30, "the new image is shown")

    def test_without_media_has_no_such_tab(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "only numbers")
        tab.goto(f"/runs/{run.number}/")
        assert tab.get_by_role("link", name="Media").count() == 0


@pytest.fixture(scope="module")
def documents(hub: Hub) -> list[Logged]:
    """Two runs with a table, a figure, a page and broken ones, whose contents tell run and step."""
    made = []
    for place in (1, 2):
        run = begin(hub, f"writes {place}")
        for step in (0, 10):
            name = f"run {place} step {step}"
            table = {"columns": ["answer", "score"], "data": [[f"<b>{name}</b>", float("nan")]]}
            run.put(f"answers/step_{step}.json", json.dumps(table).encode())
            figure = {"data": [{"type": "bar", "y": [1, step]}], "layout": {"title": {"text": name}}}
            run.put(f"plots/step_{step}.json", json.dumps(figure).encode())
            run.put(f"report_step_{step}.html", HOSTILE.replace("NAME", name).encode())
        made.append(run)
    made[0].put("plotly_step_1.html", PLOTLY.encode())
    made[0].put("deep_step_1.json", b"[" * 100_000)
    made[0].put("long_step_1.csv", b"a,b\n" + b"1,2\n" * 100_000)
    return made


# A page that writes what it can reach: nothing.
HOSTILE = """<p id="name"></p><p id="got"></p><script>
const got = [];
for (const reach of [() => document.cookie, () => localStorage.length, () => parent.document.title])
  try { got.push(reach()); } catch (error) { got.push(error.name); }
document.getElementById("got").textContent = got.join();
document.getElementById("name").textContent = "NAME";
</script>"""


# As MLflow's log_figure writes a figure of plotly.
PLOTLY = """<html><head><meta charset="utf-8"></head><body><div>
<script charset="utf-8" src="https://cdn.plot.ly/plotly-3.1.0.min.js"
integrity="sha256-x" crossorigin="anonymous"></script>
<div id="figure"></div><script type="text/javascript">
Plotly.newPlot("figure", [{"y": [1, 2], "type": "bar"}], {"title": {"text": "drawn by the hub's own"}})
</script></div></body></html>"""


def cell(tab: Any, key: str, place: int = 0) -> Any:
    row = tab.locator(".md-groups > div").filter(has=tab.get_by_role("heading", name=key, exact=True))
    shown = row.locator("[data-cell]").nth(place)
    shown.scroll_into_view_if_needed()
    return shown


class TestDocuments:
    def test_a_table_is_text_at_each_step(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/runs/{documents[0].number}/media/")
        table = cell(tab, "answers/step_*.json").locator("table")
        table.wait_for()
        assert table.locator("td").all_inner_texts() == ["<b>run 1 step 10</b>", "NaN"]
        choose(tab, 0)
        table.get_by_text("run 1 step 0").wait_for()

    def test_a_figure_is_drawn_in_its_frame(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/runs/{documents[0].number}/media/")
        frame = cell(tab, "plots/step_*.json").frame_locator("iframe")
        frame.get_by_text("run 1 step 10").wait_for(timeout=60_000)
        assert tab.evaluate("globalThis.Plotly") is None, "Plotly stays out of our page"

    def test_a_page_reaches_neither_the_hub_nor_its_cookies(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/runs/{documents[0].number}/media/")
        frame = cell(tab, "report_step_*.html").frame_locator("iframe")
        frame.get_by_text("run 1 step 10").wait_for()
        assert frame.locator("#got").inner_text() == "SecurityError,SecurityError,SecurityError"

    def test_a_figure_in_html_gets_plotly_from_the_hub(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/runs/{documents[0].number}/media/")
        frame = cell(tab, "plotly_step_*.html").frame_locator("iframe")
        frame.get_by_text("drawn by the hub's own").wait_for(timeout=60_000)

    def test_what_cannot_be_shown_whole_says_so(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/runs/{documents[0].number}/media/")
        deep = cell(tab, "deep_step_*.json")
        deep.get_by_text("Shown as plain text: it is nested too deeply.").wait_for()
        long = cell(tab, "long_step_*.csv")
        long.get_by_text("Only the beginning is shown").wait_for()
        assert long.locator("tbody tr").count() == MAX_ROWS

    def test_stands_beside_that_of_another_run(self, tab: Any, documents: list[Logged]) -> None:
        tab.goto(f"/compare/?runs={documents[0].number},{documents[1].number}")
        tab.locator("[data-section=media] .md").scroll_into_view_if_needed()
        for place in (0, 1):
            cell(tab, "answers/step_*.json", place).get_by_text(f"run {place + 1} step 10").wait_for()


def writes_histograms() -> str:
    """A script that leaves an event file with histograms at ten steps."""
    values = [np.random.default_rng(step).normal(step / 50, 1, 1000) for step in range(0, 100, 10)]
    events = [
        event(histogram_of("layer/weights", [*drawn.tolist(), -10.0, 10.0]), step=10 * place)
        for place, drawn in enumerate(values)
    ]
    content = base64.b64encode(event_file(*events)).decode()
    return (
        "import base64, pathlib\n"
        "pathlib.Path('logs/tb').mkdir(parents=True)\n"
        f"pathlib.Path('logs/tb/{NAME}').write_bytes(base64.b64decode('{content}'))\n"
    )


class TestHistograms:
    @pytest.fixture(scope="class")
    @staticmethod
    def run_ids(hub: Hub) -> list[str]:
        """Two runs that have written histograms at ten steps."""
        ids = [submit(hub, writes_histograms()) for _ in range(2)]
        for run_id in ids:
            wait_for(hub, run_id, "Completed")
        return ids

    @staticmethod
    def numbers(hub: Hub, run_ids: list[str]) -> list[int]:
        return [int(told(hub, run_id)["number"]) for run_id in run_ids]

    def test_are_drawn_over_steps_with_the_chosen_one_marked(
        self, tab: Any, hub: Hub, run_ids: list[str]
    ) -> None:
        (number, _) = self.numbers(hub, run_ids)

        def is_read() -> bool:
            tab.goto(f"/runs/{number}/media/")
            return bool(tab.locator(".md-histogram").count())

        eventually(is_read, 30, "the worker has read the event file")
        chart = cell(tab, "layer/weights")
        sentence = chart.locator(".md-spread")
        sentence.wait_for()
        assert sentence.inner_text().startswith("1,002 values from −10 to 10, half of them between 1")
        assert chart.locator(".md-heat g:not(.md-axes)").count() == 10
        assert chart.locator(".md-later").count() == 0
        choose(tab, 4)
        assert chart.locator(".md-later").count() == 5
        assert "at step 40: 1,002 values" in chart.locator("[role=img]").get_attribute("aria-label")

    def test_stand_beside_those_of_another_run(self, tab: Any, hub: Hub, run_ids: list[str]) -> None:
        numbers = ",".join(map(str, self.numbers(hub, run_ids)))
        tab.goto(f"/compare/?runs={numbers}")
        for place in (0, 1):
            cell(tab, "layer/weights", place).locator(".md-heat").wait_for()


class TestComparison:
    def test_shows_the_same_step_of_each_run(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/compare/?runs={runs[0].number},{runs[1].number}")
        tab.locator("[data-section=media] .md").scroll_into_view_if_needed()
        assert widths(tab) == [120, 220]
        choose(tab, 0)
        eventually(lambda: widths(tab) == [100, 200], 20)
