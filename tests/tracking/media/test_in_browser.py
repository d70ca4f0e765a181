"""Media by step in a real browser on a real hub: on a run's page, live, and in a comparison."""

from __future__ import annotations

import io
import json
import struct
import wave
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin

pytestmark = pytest.mark.browser
PLAY = "async sound => { await sound.play(); return sound.duration }"
ID = "3f2a9c1e-6d0b-4b43-9a3c-2f5f0a1b7c11"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
REACHES_OUT = """<p id="reached">nothing</p><script>
reached.textContent = parent.document.title + document.cookie</script>
<form action="/settings/"><button>Send</button></form>"""
NOTE_REFRESH = """() => document.addEventListener("htmx:afterRequest", event => {
  if (event.detail.elt.matches("[data-mount~=media-refresh]")) document.body.id = "answered" })"""
NATURAL_WIDTH = "image => image.complete ? image.naturalWidth : 0"


@pytest.fixture
def tab(page: Any) -> Iterator[Any]:
    """A page on which nothing may fail."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    assert errors == []


def png(width: int) -> bytes:
    """A grey image of this width, one pixel high."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    line = zlib.compress(b"\0" + b"\x80" * width)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", line) + chunk(b"IEND", b"")


def sound(seconds: int = 1) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000 * seconds))
    return out.getvalue()


def log_image(run: Logged, step: int, width: int) -> None:
    """Under the name that MLflow's client gives it."""
    run.put(f"images/eval~dogs+step+{step}+timestamp+{run.began_ms + step}+{ID}.png", png(width))


def log_files(run: Logged, step: int) -> None:
    """A table, a figure and HTML that say which step they are of."""
    table = {"columns": ["answer", "score"], "data": [[f"answer {step}", 0.5], [MARKUP, float("nan")], []]}
    run.put(f"samples/step_{step}.json", json.dumps(table).encode())
    run.put(f"scores/step_{step}.csv", f"class,score\nclass {step},1\n".encode())
    figure = {
        "data": [{"type": "bar", "y": [1, step + 1], "name": MARKUP}],
        "layout": {"title": {"text": f"figure {step}"}},
    }
    run.put(f"plots/step_{step}.json", json.dumps(figure).encode())
    run.put(f"report_step_{step}.html", f"<h1>Report {step}</h1>{REACHES_OUT}".encode())


@pytest.fixture(scope="module")
def with_files(hub: Hub) -> list[Logged]:
    """Two runs with a table, a CSV table, a figure and HTML at steps 0 and 10; the first begins at 0."""
    made = [begin(hub, f"reports {place}") for place in (1, 2)]
    for run, first in zip(made, (0, 10), strict=True):
        for step in range(first, 11, 10):
            log_files(run, step)
    return made


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


def cell(tab: Any, key: str) -> Any:
    """The cell of a key of a run, in view."""
    element = tab.locator("[data-cell]", has=tab.locator(f'[aria-label^="{key} at step"]'))
    element.scroll_into_view_if_needed()
    return element


def choose(tab: Any, index: int) -> None:
    """Moves the slider to the step with this index, as the keyboard does."""
    slider = tab.get_by_label("Step", exact=True)
    slider.focus()
    slider.press("Home")
    for _ in range(index):
        slider.press("ArrowRight")


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

    def test_leads_to_the_file(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/runs/{runs[0].number}/media/?media-step=10")
        tab.locator(".md a[data-part=page]").click()
        tab.locator(".ar-image img").wait_for()
        assert tab.locator(".ar-image img").evaluate(NATURAL_WIDTH) == 110

    def test_plays_a_sound_and_says_when_there_is_none_yet(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/runs/{runs[0].number}/media/")
        audio = tab.locator(".md audio")
        assert audio.evaluate(PLAY) == 1
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

    def test_a_sound_that_plays_outlasts_new_files(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "speaks")
        run.put("speech/step_1.wav", sound(seconds=60))
        tab.goto(f"/runs/{run.number}/media/")
        audio = tab.locator(".md audio")
        held: list[Any] = []

        def hold(route: Any) -> None:
            held.append(route)

        tab.route("**/media/", hold)
        run.put("speech/new_step_2.wav", sound())
        eventually(lambda: tab.title() and held, 30, "the page asks for the new file")
        # The sound begins while the answer is on its way.
        audio.evaluate(PLAY)
        tab.evaluate(NOTE_REFRESH)
        for route in held:
            route.continue_()
        tab.unroute("**/media/")
        tab.locator("#answered").wait_for()
        assert audio.count() == 1
        assert audio.evaluate("sound => !sound.paused")
        audio.evaluate("sound => sound.pause()")
        eventually(lambda: audio.count() == 2, 30, "then the new file is shown")


class TestFiles:
    def test_of_each_kind_are_shown_at_the_chosen_step(self, tab: Any, with_files: list[Logged]) -> None:
        tab.goto(f"/runs/{with_files[0].number}/media/")
        for index, step in ((None, 10), (0, 0)):
            if index is not None:
                choose(tab, index)
            cell(tab, "samples/step_*.json").get_by_role("cell", name=f"answer {step}", exact=True).wait_for()
            assert cell(tab, "samples/step_*.json").get_by_role("cell", name=MARKUP).count() == 1
            cell(tab, "scores/step_*.csv").get_by_role("cell", name=f"class {step}", exact=True).wait_for()
            figure = cell(tab, "plots/step_*.json").frame_locator("iframe")
            figure.locator(".gtitle", has_text=f"figure {step}").wait_for()
            html = cell(tab, "report_step_*.html").frame_locator("iframe")
            html.get_by_role("heading", name=f"Report {step}", exact=True).wait_for()
            assert html.locator("#reached").inner_text() == "nothing"
            assert "Its scripts do not run here." in cell(tab, "report_step_*.html").inner_text()

    def test_lead_to_the_file(self, tab: Any, with_files: list[Logged]) -> None:
        tab.goto(f"/runs/{with_files[0].number}/media/?media-step=0")
        cell(tab, "samples/step_*.json").get_by_role("link", name="Open the file").click()
        tab.locator(".ar-table", has_text="answer 0").wait_for()

    def test_that_the_slider_passes_are_not_requested(self, tab: Any, hub: Hub) -> None:
        run = begin(hub, "many steps")
        for step in range(12):
            run.put(f"step_{step}.csv", f"a\nrow {step}\n".encode())
        tab.goto(f"/runs/{run.number}/media/")
        tab.get_by_role("cell", name="row 11", exact=True).wait_for()
        requests: list[str] = []
        tab.on("request", lambda request: requests.append(request.url))
        slider = tab.get_by_label("Step", exact=True)
        slider.evaluate(
            "slider => { for (let at = 10; at >= 0; at--) { slider.value = at; "
            "slider.dispatchEvent(new Event('input')) } }"
        )
        tab.get_by_role("cell", name="row 0", exact=True).wait_for()
        assert [url for url in requests if "/media/file/" in url] == [requests[0]]

    def test_of_each_run_are_compared(self, tab: Any, with_files: list[Logged]) -> None:
        tab.goto(f"/compare/?runs={with_files[0].number},{with_files[1].number}")
        tab.locator("[data-section=media] .md").scroll_into_view_if_needed()
        assert tab.locator(".md-file").count() == 8
        choose(tab, 0)
        row = tab.locator(".md-groups > div", has=tab.get_by_role("heading", name="samples/step_*.json"))
        row.scroll_into_view_if_needed()
        row.get_by_role("cell", name="answer 0", exact=True).wait_for()
        assert row.locator(".md-none:visible").all_inner_texts() == ["Nothing up to this step"]


class TestComparison:
    def test_shows_the_same_step_of_each_run(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/compare/?runs={runs[0].number},{runs[1].number}")
        tab.locator("[data-section=media] .md").scroll_into_view_if_needed()
        assert widths(tab) == [120, 220]
        choose(tab, 0)
        eventually(lambda: widths(tab) == [100, 200], 20)
