"""S15 in Chromium: what was typed is still there after the password was asked for, on a wide window and on a
phone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub

pytestmark = [pytest.mark.browser, pytest.mark.slow]
AGE_SESSIONS = """
from django.contrib.sessions.models import Session
from django.contrib.sessions.backends.db import SessionStore
for session in Session.objects.all():
    store = SessionStore(session.session_key)
    if "password_confirmed_at" in store:
        store["password_confirmed_at"] -= 601
        store.save()
"""


@pytest.mark.parametrize("width", [1440, 390])
def test_a_token_is_made_after_the_password_was_typed_and_nothing_is_lost(
    hub: Hub, browser: Any, width: int
) -> None:
    context = browser.new_context(base_url=hub.browser_url, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto("/sign-in/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", hub.password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(f"{hub.browser_url}/")
    hub.manage("shell", "-c", AGE_SESSIONS)
    page.goto("/settings/")
    page.fill("#tokens input[name=name]", f"laptop-{width}")
    page.select_option("#tokens select[name=expires]", "30")
    page.click("text=Create token")
    page.fill("input[name=confirm_password]", "wrong")
    page.click("button:has-text('Confirm')")
    assert "This is not your password" in page.inner_text("main")
    page.fill("input[name=confirm_password]", hub.password)
    page.click("button:has-text('Confirm')")
    page.wait_for_selector("[data-new-token]")
    assert f"laptop-{width}" in page.inner_text("#tokens table")
    width_of_page = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert width_of_page <= width
