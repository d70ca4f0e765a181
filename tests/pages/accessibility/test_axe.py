"""No page has a fault that axe-core can find: in both themes, on a wide screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.accessibility.axe import faults
from tests.pages.accessibility.populated_hub import PopulatedHub
from tests.signing_in import sign_in
from tests.violations import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDE, PHONE = (1440, 900), (390, 844)
PAGES = (
    "/",
    "/runs/",
    "/runs/?q=nothing+like+this",
    "/runs/deleted/",
    "/runs/new/",
    "/runs/new/{draft}/source/",
    "/runs/new/{draft}/distribution/",
    "/runs/new/{draft}/resources/",
    "/runs/new/{draft}/environment/",
    "/runs/new/{draft}/review/",
    *(f"/runs/{{completed}}/{tab}" for tab in ("", "gpus/", "members/", "plan/", "outputs/", "events/", "spec/")),
    "/runs/{completed}/outputs/?file=saved/notes.md",
    "/runs/{completed}/outputs/?file=saved/table.csv",
    *(f"/runs/{{failed}}/{tab}" for tab in ("", "events/")),
    "/runs/{running}/",
    "/runs/{running}/gpus/",
    "/runs/{waiting}/",
    *(f"/runs/{{logged}}/{tab}" for tab in ("metrics/", "params/", "notes/")),
    "/compare/",
    "/compare/?runs={several}",
    "/compare/?runs={several}&sections=params,metrics,attributes,relations",
    "/experiments/",
    "/clusters/",
    "/clusters/{cluster}/",
    "/clusters/{cluster}/edit/",
    "/clusters/add/",
    "/clusters/add-cluster/",
    "/nodes/{node}/",
    "/gpus/{gpu}/",
    "/gpus/{split}/",
    "/alerts/",
    "/models/",
    "/models/digits/",
    "/models/digits/versions/1/",
    "/models/unsafe/versions/1/",
    "/models/digits/alias/",
    "/register/?run={completed}&path=saved",
    "/upload/",
    "/environments/",
    "/usage/",
    "/settings/",
    "/settings/password/",
    "/settings/confirm/",
    "/settings/notifications/",
    "/settings/notifications/add/own/",
    "/invitations/",
    "/search/?q=classifier",
    "/search/?q=nothing+like+this",
    "/api/",
    "/none/",
)
DRAWN = """() => document.readyState === "complete"
  && [...document.querySelectorAll(".ch-plot")].every((plot) => plot.querySelector(".main-svg") || !plot.offsetParent)"""


@pytest.fixture(scope="module")
def populated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PopulatedHub]:
    made = PopulatedHub(tmp_path_factory.mktemp("accessible"))
    try:
        yield made.start()
    finally:
        made.stop()


def tab_of(browser: Any, populated: PopulatedHub, size: tuple[int, int], state: Any) -> Any:
    context = browser.new_context(
        base_url=populated.hub.browser_url,
        viewport={"width": size[0], "height": size[1]},
        storage_state=state,
        reduced_motion="reduce",
    )
    return context.new_page()


@pytest.fixture(scope="module")
def tabs(browser: Any, populated: PopulatedHub) -> Iterator[list[Any]]:
    """A wide and a narrow tab of a person who has signed in."""
    state = sign_in(browser, populated.hub)
    made = [tab_of(browser, populated, size, state) for size in (WIDE, PHONE)]
    yield made
    for tab in made:
        tab.context.close()


def faults_in_both_themes(tab: Any) -> list[str]:
    tab.emulate_media(color_scheme="light")
    found = faults(tab)
    tab.emulate_media(color_scheme="dark")
    return found + [f"dark: {fault}" for fault in faults(tab, colors_only=True)]


def settle(tab: Any) -> None:
    wait_until(tab, "document.readyState === 'complete'")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_open_to_everybody(address: str, tabs: list[Any], populated: PopulatedHub) -> None:
    found = []
    for tab in tabs:
        tab.goto(address.format(**populated.names))
        settle(tab)
        width = tab.viewport_size["width"]
        found += [f"{width} px: {fault}" for fault in faults_in_both_themes(tab)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_the_page_for_signing_in_is_open_to_everybody(
    size: tuple[int, int], browser: Any, populated: PopulatedHub
) -> None:
    tab = tab_of(browser, populated, size, None)
    tab.goto("/sign-in/")
    found = faults_in_both_themes(tab)
    tab.fill("input[name=username]", "nobody")
    tab.fill("input[name=password]", "wrong")
    tab.press("input[name=password]", "Enter")
    tab.get_by_role("alert").first.wait_for()
    found += faults_in_both_themes(tab)
    tab.context.close()
    assert not found, "\n".join(found)
