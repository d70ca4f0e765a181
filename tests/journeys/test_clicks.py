"""How many clicks the first things need that people do, counted from the dashboard after signing in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.signing_in import sign_in
from tests.simulator.test_demo import Demo
from trainhub.demo.story import PAST

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PATIENCE_MS = 60_000


class Clicks:
    """Counts the clicks on a page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.count = 0

    def on(self, selector: str, **options: Any) -> None:
        self.page.click(selector, timeout=PATIENCE_MS, **options)
        self.count += 1

    def choose(self, selector: str, folder: Path) -> None:
        self.page.set_input_files(selector, folder)
        self.count += 1


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = Demo(tmp_path_factory.mktemp("demo") / "data")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def signed_in_to_demo(browser: Any, demo: Demo) -> Any:
    return sign_in(browser, demo)


@pytest.fixture
def clicks(demo: Demo, browser: Any, signed_in_to_demo: Any) -> Iterator[Clicks]:
    """On the dashboard of the demo, signed in."""
    context = browser.new_context(base_url=demo.browser_url, storage_state=signed_in_to_demo)
    page = context.new_page()
    page.goto("/")
    yield Clicks(page)
    context.close()


def completes(page: Any) -> None:
    page.wait_for_selector("#run-header .th-pill:has-text('Completed')", timeout=PATIENCE_MS)


class TestDemo:
    def test_an_example_runs_after_two(self, clicks: Clicks) -> None:
        clicks.on(".th-try button")
        clicks.on(".wz-submit")
        completes(clicks.page)
        assert clicks.count == 2

    def test_the_own_folder_runs_after_four(self, clicks: Clicks, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "train.py").write_text("print('mine')\n")
        clicks.on("a:has-text('New run')")
        clicks.choose("input[webkitdirectory]", tmp_path / "mine")
        clicks.on(".wz-step[value=review]")
        clicks.on(".wz-submit")
        completes(clicks.page)
        assert clicks.count == 4

    def test_three_runs_are_compared_after_four(self, clicks: Clicks) -> None:
        clicks.page.goto("/")
        clicks.on(".th-rail a:has-text('Runs')")
        rows = "tr:has-text('seed {seed}'):has-text('same again') input[name=run]"
        clicks.on(rows.format(seed=4))
        clicks.on(rows.format(seed=2), modifiers=["Shift"])
        clicks.on("#bulk >> text=Compare")
        clicks.page.wait_for_url("**/compare/?runs=*")
        assert clicks.page.locator("h1:has-text('Compare')").is_visible()
        assert len(re.findall(r"\d+", clicks.page.url.partition("runs=")[2].replace("%2C", ","))) == 3
        assert clicks.count == 4

    def test_a_model_is_registered_after_three(self, clicks: Clicks) -> None:
        clicks.on(f"a[href='/runs/{len(PAST)}/']")
        clicks.on("a:has-text('Register')")
        clicks.on("button:has-text('Register')")
        clicks.page.wait_for_url("**/models/seeds/**")
        assert clicks.count == 3

    def test_the_cause_of_a_failure_is_read_after_one(self, clicks: Clicks) -> None:
        failed = "table tr:has-text('CUDA out of memory') a"
        eventually(lambda: clicks.page.locator(failed).count(), 60, "the visitor's run fails")
        clicks.on(f"{failed} >> nth=0")
        cause = clicks.page.locator(".th-cause")
        cause.wait_for(timeout=PATIENCE_MS)
        assert "What to do" in cause.inner_text()
        assert clicks.count == 1

    def test_an_idle_gpu_is_seen_without_any(self, clicks: Clicks) -> None:
        # The label of a machine whose GPU has had an uncorrectable error goes on: "…, 1 unhealthy".
        assert clicks.page.locator("[aria-label*='GPUs busy']").count() == 6


def test_an_example_of_a_hub_with_runs_runs_after_three(page: Any, hub: Hub) -> None:
    """An empty hub offers the first one on its dashboard, with one click less (tests/pages/test_lists.py)."""
    clicks = Clicks(page)
    page.goto("/")
    clicks.on(".th-rail a:has-text('New run')")
    clicks.on(".wz-card:has-text('Hello')")
    clicks.on(".wz-submit")
    completes(page)
    assert clicks.count == 3
