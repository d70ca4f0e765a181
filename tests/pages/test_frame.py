"""The frame around every page, in a real browser on a real hub."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.browsing import number_of
from tests.runs import submit, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def ended(hub: Hub) -> str:
    run = submit(hub, "print('hello')")
    assert wait_for(hub, run)["state"] == "Completed"
    return run


class TestFrame:
    ADDRESSES = (
        "/",
        "/runs/",
        "/runs/new/",
        "/experiments/",
        "/clusters/",
        "/models/",
        "/environments/",
        "/settings/",
        "/none/",
    )

    @pytest.mark.parametrize("width", [390, pytest.param(800, marks=pytest.mark.long), 1440])
    def test_no_page_is_wider_than_the_screen(self, page: Any, hub: Hub, ended: str, width: int) -> None:
        page.set_viewport_size({"width": width, "height": 844})
        run = f"/runs/{number_of(hub, ended)}/"
        for address in (
            *self.ADDRESSES,
            *(run + tab for tab in ("", "logs/", "members/", "plan/", "outputs/", "events/", "spec/")),
        ):
            page.goto(address)
            over = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{address} is {over} px too wide"

    def test_no_page_writes_an_error_into_the_console(self, page: Any, hub: Hub, ended: str) -> None:
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        for address in (*self.ADDRESSES[:-1], f"/runs/{number_of(hub, ended)}/"):
            page.goto(address)
            page.wait_for_load_state("networkidle")
        assert errors == []

    def test_the_theme_is_chosen_before_the_first_paint_and_kept(self, page: Any) -> None:
        page.emulate_media(color_scheme="dark")
        page.goto("/")
        theme = "document.documentElement.dataset.bsTheme"
        assert page.evaluate(theme) == "dark", "follows the system"
        page.click("[data-mount=theme]")
        page.goto("/runs/", wait_until="commit")
        page.wait_for_selector("link[rel=stylesheet]", state="attached")
        assert page.evaluate(theme) == "light"

    def test_keys_search_and_walk_through_rows(self, page: Any, hub: Hub, ended: str) -> None:
        page.goto("/runs/")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.locator("tr.th-at").count() == 1
        page.keyboard.press("/")
        page.keyboard.type(f"run {number_of(hub, ended)}")
        page.click(f"#found a[href='/runs/{number_of(hub, ended)}/']")
        page.wait_for_url(re.compile(rf"/runs/{number_of(hub, ended)}/"))

    def test_cancel_asks_first(self, page: Any, hub: Hub) -> None:
        run = submit(hub, "import time; time.sleep(600)")
        wait_for(hub, run, "Running")
        page.goto(f"/runs/{number_of(hub, run)}/")
        page.click("#run-header button:has-text('Cancel')")
        page.click("dialog button:has-text('Keep it')")
        assert wait_for(hub, run, "Running")["state"] == "Running"
        page.click("#run-header button:has-text('Cancel')")
        page.click("dialog button:has-text('Cancel the run')")
        page.wait_for_selector("#run-header .th-pill:has-text('Canceled')", timeout=30_000)

    def test_filters_narrow_the_list_as_one_types_and_stay_in_the_address(
        self, page: Any, hub: Hub, ended: str
    ) -> None:
        page.goto("/runs/")
        page.fill(".th-filters [name=q]", "no such run")
        page.wait_for_selector("#runs :text('No run matches')")
        assert "q=no%20such%20run" in page.url
        page.click("text=Show all runs")
        page.wait_for_selector(f"#run-{number_of(hub, ended)}")
        page.go_back()
        page.wait_for_selector("#runs :text('No run matches')")
        assert page.input_value(".th-filters [name=q]") == "no such run"
