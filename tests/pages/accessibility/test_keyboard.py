"""The pages by keyboard alone: the list of keys, errors of a form, parts that scroll, the command palette."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.accessibility.axe import faults
from tests.pages.browsing import number_of
from tests.runs import submit, wait_for
from tests.signing_in import sign_in
from tests.violations import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOCUSED = "document.activeElement.id || document.activeElement.name"
THEME = "document.documentElement.dataset.themeChoice"


@pytest.fixture(scope="module")
def number(hub: Hub) -> int:
    run = submit(hub, "print('hello')", display_name="found by its name")
    wait_for(hub, run, "Completed")
    return number_of(hub, run)


def find(page: Any, text: str) -> Any:
    """Opens the palette, types and returns the first result."""
    page.keyboard.press("Control+k")
    page.locator(".th-palette input:focus").wait_for()
    page.keyboard.type(text)
    option = page.locator(".th-palette [role=option][aria-selected=true]")
    option.filter(has_text=re.compile(text, re.IGNORECASE)).wait_for()
    return option


class TestKeys:
    def test_a_question_mark_lists_the_keys_of_this_page(self, page: Any, number: int) -> None:
        page.goto("/runs/")
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard")
        dialog.wait_for()
        assert dialog.get_by_role("heading", level=3).all_inner_texts() == ["Everywhere", "Tables"]
        assert not faults(page)
        page.keyboard.press("j")
        assert page.locator("tr.th-at").count() == 0, "the dialog has the keyboard"
        page.keyboard.press("Escape")
        page.goto(f"/runs/{number}/logs/")
        page.locator("[data-part=find]").wait_for()
        page.keyboard.press("?")
        assert "Find in this log" in dialog.inner_text()

    def test_a_question_mark_in_a_field_is_text(self, page: Any) -> None:
        page.keyboard.press("/")
        page.keyboard.type("why?")
        assert page.input_value("#search") == "why?"
        assert page.locator("dialog").count() == 0


class TestErrors:
    def test_the_first_one_has_the_focus_after_a_submit_and_a_key_leads_to_the_next(
        self, confirmed_page: Any
    ) -> None:
        page = confirmed_page
        page.goto("/clusters/add/")
        page.fill("[name=cluster]", "../?!")
        page.fill("[name=name]", "../?!")
        page.keyboard.press("Enter")
        page.locator(".th-error").first.wait_for()
        first = page.evaluate(FOCUSED)
        assert first in ("id_cluster", "id_name")
        page.keyboard.press("Alt+e")
        assert page.evaluate(FOCUSED) in ("id_cluster", "id_name")
        page.locator("h1").click()
        page.keyboard.press("e")
        assert page.evaluate(FOCUSED) == first

    def test_the_link_beside_a_finding_leads_to_its_field(self, page: Any) -> None:
        page.goto("/runs/new/")
        page.locator("form[action$='/runs/new/blank/'] button").click()
        page.wait_for_url(re.compile("/source/"))
        page.goto(re.sub("source/.*", "review/", page.url))
        page.locator(".wz-findings a[href*='#finding-script']").first.click()
        page.wait_for_url(re.compile("#finding-script"))
        wait_until(page, "document.activeElement.name === 'script'")

    def test_a_wrong_password_is_typed_again_and_not_the_name(self, browser: Any, hub: Hub) -> None:
        tab = browser.new_page(base_url=hub.browser_url)
        tab.goto("/sign-in/")
        wait_until(tab, "document.activeElement.name === 'username'")  # autofocus waits for a frame
        tab.keyboard.type("admin")
        tab.fill("[name=password]", "wrong")
        tab.keyboard.press("Enter")
        tab.get_by_role("alert").wait_for()
        wait_until(tab, "document.activeElement.name === 'password'")
        tab.context.close()


class TestScrolling:
    def test_a_part_is_a_stop_of_the_tab_key_only_while_it_scrolls(self, page: Any, number: int) -> None:
        page.goto(f"/runs/{number}/spec/")
        assert page.locator("#spec[tabindex]").count() == 0
        page.set_viewport_size({"width": 300, "height": 800})
        page.locator("#spec[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        wait_until(page, "document.querySelector('#spec').scrollLeft > 0")
        page.set_viewport_size({"width": 1440, "height": 800})
        page.locator("#spec:not([tabindex])").wait_for()


class TestPalette:
    def test_nothing_of_it_is_loaded_before_its_first_use(self, page: Any) -> None:
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto("/experiments/")
        page.wait_for_load_state("networkidle")
        assert not [url for url in requested if "palette" in url or "shortcuts" in url]
        page.keyboard.press("Control+k")
        page.locator(".th-palette [role=option]").first.wait_for()
        assert [url for url in requested if url.endswith("/js/palette.js")]

    def test_a_run_is_found_by_name_and_by_number(self, page: Any, number: int) -> None:
        find(page, "found by its name")
        assert not faults(page)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/runs/{number}/")
        page.goto("/")
        page.keyboard.press("Control+k")
        page.locator(".th-palette input:focus").wait_for()
        page.keyboard.type(f"run {number}")
        page.keyboard.press("Enter")  # ahead of the list
        page.wait_for_url(f"**/runs/{number}/")

    def test_arrows_choose_and_the_field_says_what_is_chosen(self, page: Any) -> None:
        page.keyboard.press("Control+k")
        options = page.locator(".th-palette [role=option]")
        options.nth(2).wait_for()
        field = page.get_by_role("combobox", name="Find or do")
        assert field.get_attribute("aria-expanded") == "true"
        for key, chosen in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
            page.keyboard.press(key)
            assert options.nth(chosen).get_attribute("aria-selected") == "true"
            assert field.get_attribute("aria-activedescendant") == options.nth(chosen).get_attribute("id")
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0

    def test_actions_are_done_by_the_page_or_open_their_own(self, page: Any) -> None:
        assert page.evaluate(THEME) == "system"
        find(page, "switch theme")
        page.keyboard.press("Enter")
        wait_until(page, f"{THEME} === 'light'")
        find(page, "add a machine")
        page.keyboard.press("Enter")
        page.wait_for_url("**/clusters/add/")

    def test_sign_out_leads_to_the_door(self, browser: Any, hub: Hub) -> None:
        context = browser.new_context(base_url=hub.browser_url, storage_state=sign_in(browser, hub))
        tab = context.new_page()
        tab.goto("/")
        find(tab, "sign out")
        tab.keyboard.press("Enter")
        # Not `wait_for_url`: the socket of the page notices the end of the session, too; either may lead
        # to the door first.
        tab.locator("input[name=username]").wait_for()
        assert "/sign-in/" in tab.url
        context.close()
