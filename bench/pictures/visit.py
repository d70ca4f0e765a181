"""A signed-in visit of the demo in a headless browser, and the addresses that the pictures show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, Playwright, StorageState, sync_playwright

from tests.harness import chromium

# Charts draw and fonts settle within this time after the load event.
SETTLE_MS = 2500
WIDE, NARROW = (1440, 900), (390, 844)


class Visit:
    """A browser in which the demo's owner is signed in.

    `failed`, `compare`: the addresses that the demo's dashboard offers, of a failed run and of five runs."""

    def __init__(self, playwright: Playwright, url: str, password: str) -> None:
        self.url = url
        self.browser: Browser = chromium.launch(playwright)
        page = self.browser.new_page()
        page.goto(url)
        page.fill("[name=username]", "admin")
        page.fill("[name=password]", password)
        page.click("button.th-main")
        page.wait_for_selector("text=Things to try")
        self.session: StorageState = page.context.storage_state()
        self.failed = str(page.locator("a:has-text('See why run')").first.get_attribute("href"))
        self.compare = str(page.locator("a:has-text('Compare five')").first.get_attribute("href"))
        page.context.close()

    def page(self, size: tuple[int, int] = WIDE, *, is_dark: bool = False) -> Page:
        return self.browser.new_page(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if is_dark else "light",
            storage_state=self.session,
            is_mobile=size == NARROW,
            has_touch=size == NARROW,
        )

    def open(self, page: Page, address: str) -> None:
        page.goto(f"{self.url}{address}")
        page.wait_for_timeout(SETTLE_MS)


@contextmanager
def visit(url: str, password: str) -> Iterator[Visit]:
    with sync_playwright() as playwright:
        visitor = Visit(playwright, url.rstrip("/"), password)
        yield visitor
        visitor.browser.close()
