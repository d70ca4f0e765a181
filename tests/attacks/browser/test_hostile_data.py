"""Row "XSS" of what the review tried and found held: whatever a run, a person or a node says is shown as
text, on every page.

The watched browser adds its own check: an event handler or a script that got into a page would be a violation
of its policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.attacks.browser.hostile import Hostile
from tests.hub import Hub, eventually
from tests.signing_in import note_dialogs, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOREIGN = (
    "[onerror], [onload], a[href^='javascript'], a[href^='data'], img[src='x'], script:not([src]):not([type])"
)
"""Elements that no page of the hub has by itself."""
AREAS = ("job", "logged run", "files", "lists", "models", "machines")


@pytest.fixture(scope="module")
def own_module_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Not the shared one: the hostile machine would stand on other tests' pages."""
    running = Hub(tmp_path_factory.mktemp("hostile") / "data")
    try:
        yield running.start()
        running.cancel_all()
    finally:
        running.stop()


@pytest.fixture(scope="module")
def hostile(own_module_hub: Hub) -> Hostile:
    return Hostile(own_module_hub)


@pytest.fixture(scope="module")
def person(browser: Any, own_module_hub: Hub) -> Any:
    """What the owner's browser keeps."""
    return sign_in(browser, own_module_hub)


@pytest.fixture
def tab(browser: Any, own_module_hub: Hub, person: Any) -> Iterator[Any]:
    """A tab of the owner; a dialog or an error of a script fails the test."""
    found: list[str] = []
    context = browser.new_context(base_url=own_module_hub.browser_url, storage_state=person)
    made = context.new_page()
    note_dialogs(made, found)
    made.on("pageerror", lambda error: found.append(f"{made.url}: {error.stack}"))
    yield made
    context.close()
    assert found == []


@pytest.mark.parametrize("area", AREAS)
def test_what_others_say_is_shown_as_text(area: str, tab: Any, hostile: Hostile) -> None:
    for address in hostile.addresses()[area]:
        answer = tab.goto(address)
        assert answer.status == 200, address
        tab.wait_for_load_state("load")
        for frame in tab.frames:
            found = frame.evaluate(
                "wanted => [...document.querySelectorAll(wanted)].map((one) => one.outerHTML)", FOREIGN
            )
            assert found == [], f"{address}: {found}"


def test_it_is_there_to_be_seen(tab: Any, hostile: Hostile) -> None:
    """The test above would pass on empty pages."""
    for address, words in hostile.words().items():
        tab.goto(address)
        eventually(
            lambda words=words: all(word in tab.inner_text("body") for word in words),  # type: ignore[misc]
            what=f"{address} shows {words}",
        )


def test_escape_sequences_of_a_terminal_become_no_link(tab: Any, hostile: Hostile) -> None:
    """OSC 8 makes links in terminals; the log viewer shows their text alone."""
    tab.goto(f"{hostile.addresses()['job'][0]}logs/")
    log = tab.locator("[data-mount=log-view]")
    eventually(lambda: "click" in log.inner_text(), what="the log is shown")
    assert log.locator("a[href*=alert]").count() == 0
    assert "title" not in tab.title()
