"""Somebody comes and leaves, in Chromium: invited with a link, at work, and out on every open page."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.hub import Hub
from tests.people import PASSWORD
from tests.signing_in import sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def nora(hub: Hub, confirmed_page: Any, browser: Any) -> Any:
    """The browser of a new contributor who has chosen a password by an operator's link."""
    name = f"nora-{time.time_ns()}"
    page = confirmed_page
    page.goto("/settings/")
    page.fill("#members input[name=username]", name)
    page.click("text=Add member")
    page.wait_for_selector("[data-new-password]")
    page.goto("/people/")
    page.click(f"a:text-is('{name}')")
    page.click("text=Make a link for a new password")
    address = page.get_attribute("[data-link] button", "data-text")
    context = browser.new_context(base_url=hub.browser_url)
    tab = context.new_page()
    tab.goto(address)
    for field in ("new_password1", "new_password2"):
        tab.fill(f"input[name={field}]", PASSWORD)
    tab.click("text=Set the password")
    tab.wait_for_url(f"{hub.browser_url}/sign-in/")
    assert "Your password is set. Sign in with it." in tab.inner_text("body")
    context.close()
    context = browser.new_context(
        base_url=hub.browser_url, storage_state=sign_in(browser, hub, name, PASSWORD)
    )
    tab = context.new_page()
    tab.goto("/")
    tab.wait_for_selector("html[data-live=on]")
    yield tab
    context.close()


def test_a_leaver_is_out_on_the_page_that_is_open(hub: Hub, confirmed_page: Any, nora: Any) -> None:
    page = confirmed_page
    nora.wait_for_load_state("networkidle")
    page.click("button:has-text('Deactivate')")
    page.click("dialog button:has-text('Deactivate')")
    page.wait_for_selector("text=is deactivated: signed out everywhere")
    nora.wait_for_url(f"{hub.browser_url}/sign-in/**")
    assert "Dashboard" not in nora.inner_text("body")


def test_an_archived_workspace_can_be_read_and_not_changed(hub: Hub, confirmed_page: Any) -> None:
    page, name = confirmed_page, f"Vision {time.time_ns()}"
    page.goto("/workspaces/")
    page.fill("#id_name", name)
    page.click("text=Make workspace")
    page.wait_for_selector(f"input[value='{name}']")
    page.click("header summary")
    page.click(f"button:has-text('{name}')")
    page.wait_for_selector(f".th-workspace:text-is('{name}')")
    assert page.locator("text=New run").count()
    page.goto("/workspaces/")
    row = page.locator("tr", has=page.locator(f"input[value='{name}']"))
    row.locator("button:has-text('Archive')").click()
    page.click("dialog button:has-text('Archive')")
    page.wait_for_selector("text=is archived: its members can read it")
    page.goto("/runs/new/")
    assert "is archived and can only be read" in page.inner_text("body")
    page.goto("/runs/")
    assert page.locator("h1:text-is('Runs')").count() == 1
