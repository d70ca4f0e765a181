"""No page has a fault that axe-core can find: in both themes, on a wide screen or on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.pages.accessibility.axe import faults
from tests.pages.accessibility.pages import PAGES
from tests.pages.accessibility.populated_hub import PopulatedHub
from tests.signing_in import sign_in
from tests.violations import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDE, PHONE = (1440, 900), (390, 844)
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
WITH_CHARTS = "[data-mount~=charts], [data-mount~=curves], [data-mount~=compare], [data-mount~=heat]"
WRITE_NONSENSE = "(fields) => fields.forEach((field) => { field.value = '../?!'; })"
CHARTS_FIT = """[...document.querySelectorAll(".ch-plot")].every((plot) => {
  const drawing = plot.querySelector(".main-svg");
  const isInView = plot.clientWidth > 0 && plot.getBoundingClientRect().top < innerHeight;
  return !drawing || !isInView || Math.abs(drawing.getBoundingClientRect().width - plot.clientWidth) <= 1;
})"""
UNFOLD = "document.querySelectorAll('main details:not(.th-menu)').forEach((part) => { part.open = true; })"


@pytest.fixture(scope="module")
def populated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PopulatedHub]:
    made = PopulatedHub(tmp_path_factory.mktemp("accessible"))
    try:
        yield made.start()
    finally:
        made.stop()


def tab_of(browser: Any, populated: PopulatedHub, state: Any) -> Any:
    context = browser.new_context(
        base_url=populated.hub.browser_url, storage_state=state, reduced_motion="reduce"
    )
    return context.new_page()


@pytest.fixture(scope="module")
def tab(browser: Any, populated: PopulatedHub) -> Iterator[Any]:
    """A tab of a person who has signed in."""
    made = tab_of(browser, populated, sign_in(browser, populated.hub))
    yield made
    made.context.close()


def resize(tab: Any, size: tuple[int, int]) -> None:
    """Gives the page this size, and waits for its charts to follow."""
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    tab.evaluate(NEXT_FRAME)
    wait_until(tab, CHARTS_FIT)


def faults_in_both_themes(tab: Any) -> list[str]:
    tab.emulate_media(color_scheme="light")
    problems = faults(tab)
    tab.emulate_media(color_scheme="dark")
    return problems + [f"dark: {fault}" for fault in faults(tab, colors_only=True)]


def open_page(tab: Any, address: str) -> None:
    """Opens the page with everything that is folded away, and waits for its charts."""
    tab.goto(address)
    tab.evaluate(UNFOLD)
    tab.evaluate(NEXT_FRAME)  # what opened has its size by then
    if tab.locator(WITH_CHARTS).count():
        tab.wait_for_load_state("networkidle")


def each_page_once() -> Iterator[Any]:
    """Every page in one size, which takes turns. In the other one it is looked at by `make test-long`."""
    for number, address in enumerate(PAGES):
        for size in (WIDE, PHONE):
            is_again = (size == PHONE) != bool(number % 2)
            yield pytest.param(address, size, marks=pytest.mark.long if is_again else ())


@pytest.mark.parametrize(("address", "size"), list(each_page_once()))
def test_a_page_is_open_to_everybody(
    address: str, size: tuple[int, int], tab: Any, populated: PopulatedHub
) -> None:
    resize(tab, size)
    open_page(tab, address.format(**populated.names))
    problems = faults_in_both_themes(tab)
    assert not problems, "\n".join(problems)


def submit_nonsense(tab: Any) -> None:
    """Sends the page's form with values that every text field refuses."""
    tab.locator("main form input:not([type])").or_(tab.locator("main form input[type=text]")).evaluate_all(
        WRITE_NONSENSE
    )
    tab.locator("main form button.th-main").last.click()
    tab.locator(".th-error, .wz-problem").first.wait_for()


def search_by_field(tab: Any) -> None:
    tab.type("#search", "classifier")
    tab.locator("#found a").first.wait_for()


def ask_before_deletion(tab: Any) -> None:
    tab.locator("main form[data-mount~=confirm] button").last.click()
    tab.locator("dialog[open]").wait_for()


def search_all_logs(tab: Any) -> None:
    if tab.locator(".lanes-pick").is_visible():
        tab.click(".lanes-pick")
    tab.fill("[data-part=query]", "step")
    tab.press("[data-part=query]", "Enter")
    tab.locator(".hit").first.wait_for()


STATES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "the user's menu": ("/settings/", lambda tab: tab.click(".th-bar .th-menu > summary")),
    "results below the search field": ("/", search_by_field),
    "a question before a deletion": ("/runs/{completed}/", ask_before_deletion),
    "errors of a form": ("/clusters/add/", submit_nonsense),
    "errors of a step": ("/runs/new/{draft}/source/", submit_nonsense),
    "lines found in all logs": ("/runs/{completed}/logs/", search_all_logs),
    "charts as numbers": ("/nodes/{node}/", lambda tab: tab.click("[data-part=table]")),
}


@pytest.fixture(scope="module")
def confirmed_tab(browser: Any, tab: Any, populated: PopulatedHub) -> Any:
    """The tab after a new sign-in: ten minutes after one, adding a machine asks for the password again."""
    cookies = sign_in(browser, populated.hub)["cookies"]
    tab.context.clear_cookies()
    tab.context.add_cookies(cookies)
    return tab


@pytest.mark.parametrize("state", STATES)
def test_what_a_page_shows_on_demand_is_open_to_everybody(
    state: str, confirmed_tab: Any, populated: PopulatedHub
) -> None:
    address, reach = STATES[state]
    problems = []
    for size in (WIDE, PHONE):
        resize(confirmed_tab, size)
        open_page(confirmed_tab, address.format(**populated.names))
        reach(confirmed_tab)
        problems += faults_in_both_themes(confirmed_tab)
    assert not problems, "\n".join(problems)


def test_the_page_for_signing_in_is_open_to_everybody(browser: Any, populated: PopulatedHub) -> None:
    tab = tab_of(browser, populated, None)
    problems = []
    for size in (WIDE, PHONE):
        resize(tab, size)
        tab.goto("/sign-in/")
        problems += faults_in_both_themes(tab)
        tab.fill("input[name=username]", "nobody")
        tab.fill("input[name=password]", "wrong")
        tab.press("input[name=password]", "Enter")
        tab.get_by_role("alert").first.wait_for()
        problems += faults_in_both_themes(tab)
    tab.context.close()
    assert not problems, "\n".join(problems)
