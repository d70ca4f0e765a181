"""Images and sounds by step in a real browser on a real hub: on a run's page, live, and in a comparison."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.pages.logs.training_log import Logged, begin

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


def png(width: int) -> bytes:
    """A grey image of this width, one pixel high."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    line = zlib.compress(b"\0" + b"\x80" * width)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", line) + chunk(b"IEND", b"")


def sound() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))
    return out.getvalue()


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


class TestComparison:
    def test_shows_the_same_step_of_each_run(self, tab: Any, runs: list[Logged]) -> None:
        tab.goto(f"/compare/?runs={runs[0].number},{runs[1].number}")
        tab.locator("[data-section=media] .md").scroll_into_view_if_needed()
        assert widths(tab) == [120, 220]
        choose(tab, 0)
        eventually(lambda: widths(tab) == [100, 200], 20)
