"""The moving picture of the README: a failure explained, runs compared, an unhealthy GPU, an own run."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page

from bench.pictures.stills import UNHEALTHY_NODE
from bench.pictures.visit import SETTLE_MS, Visit

SCREEN = (1280, 800)
PICTURE = (1120, 700)
CAPTION_PX = 34
QUALITY = 72
POLL_MS = 700
MAX_LIVE_FRAMES = 12


class Film:
    """Frames with the milliseconds that each is shown."""

    def __init__(self) -> None:
        self.frames: list[tuple[Image.Image, int]] = []

    def add(self, page: Page, caption: str, shown_ms: int) -> None:
        image = (
            Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(PICTURE, Image.Resampling.LANCZOS)
        )
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, PICTURE[1] - CAPTION_PX, *PICTURE), fill="#1a1e24")
        font = ImageFont.load_default(size=17)
        draw.text(
            (PICTURE[0] / 2, PICTURE[1] - CAPTION_PX / 2), caption, fill="white", font=font, anchor="mm"
        )
        self.frames.append((image, shown_ms))

    def save(self, path: Path) -> None:
        first, *others = [image for image, _ in self.frames]
        durations = [shown_ms for _, shown_ms in self.frames]
        first.save(
            path, save_all=True, append_images=others, duration=durations, loop=0, quality=QUALITY, method=6
        )


def record_tour(visitor: Visit, path: Path) -> None:
    film, page = Film(), visitor.page(SCREEN)
    visitor.open(page, "/")
    film.add(page, "TrainHub: every GPU, every run, every alert", 2500)
    _failure(visitor, page, film)
    _comparison(visitor, page, film)
    _gpu(visitor, page, film)
    _own_run(visitor, page, film)
    film.save(path)


def _failure(visitor: Visit, page: Page, film: Film) -> None:
    caption = "Why a run failed: the rank, the line, and what to do"
    visitor.open(page, visitor.failed)
    film.add(page, caption, 3000)
    page.click("text=Show in the log")
    page.wait_for_timeout(SETTLE_MS)
    _scroll_to(page, ".log-view")
    film.add(page, caption, 2500)


def _comparison(visitor: Visit, page: Page, film: Film) -> None:
    caption = "Five runs compared: curves, parameters, results"
    visitor.open(page, visitor.compare)
    for scrolled_px in _scroll(page, (0, 500, 1000)):
        film.add(page, caption, 2000 if scrolled_px else 2500)


def _gpu(visitor: Visit, page: Page, film: Film) -> None:
    caption = "The GPU that is unhealthy, since when, and what it needs"
    visitor.open(page, "/clusters/")
    film.add(page, caption, 1500)
    visitor.open(page, f"/nodes/{UNHEALTHY_NODE}/")
    film.add(page, caption, 2000)
    page.click("a:has-text('GPU 2') >> nth=0")
    page.wait_for_timeout(SETTLE_MS)
    film.add(page, caption, 2000)
    _scroll_to(page, "[data-mount=charts]")
    film.add(page, caption, 2500)


def _own_run(visitor: Visit, page: Page, film: Film) -> None:
    caption = "A run of your own: review, submit, watch it finish"
    visitor.open(page, "/")
    page.click("text=Start a run of your own")
    page.wait_for_url("**/review/")
    page.wait_for_timeout(SETTLE_MS)
    film.add(page, caption, 2200)
    page.click("text=Submit the run")
    page.wait_for_selector(".th-tabs")
    for _ in range(MAX_LIVE_FRAMES):
        film.add(page, caption, 600)
        if page.locator(
            "h1 + .th-pill:has-text('Completed'), .th-head .th-pill:has-text('Completed')"
        ).count():
            break
        page.wait_for_timeout(POLL_MS)
    page.wait_for_timeout(SETTLE_MS)
    film.add(page, caption, 3500)


def _scroll_to(page: Page, selector: str) -> None:
    page.locator(selector).first.evaluate("part => part.scrollIntoView({ behavior: 'instant' })")
    page.wait_for_timeout(SETTLE_MS)


def _scroll(page: Page, places_px: tuple[int, ...]) -> Iterator[int]:
    for place_px in places_px:
        page.evaluate("top => scrollTo({ top, behavior: 'instant' })", place_px)
        page.wait_for_timeout(SETTLE_MS if place_px else 0)
        yield place_px
