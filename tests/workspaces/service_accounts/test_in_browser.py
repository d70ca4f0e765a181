"""An owner makes a service account and a token in Chromium, uses it, and deletes it after the question."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.hub import Hub

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_an_owner_makes_uses_and_deletes_one(hub: Hub, confirmed_page: Any) -> None:
    page, name = confirmed_page, f"ci-{time.time_ns()}"
    page.goto("/settings/")
    page.click("a:has-text('Service accounts')")
    page.fill("input[name=name]", name)
    page.click("button:text-is('Create')")
    page.wait_for_selector(f"h1:has-text('{name}')")
    page.fill("input[name=name]", "pipeline")
    page.click("text=Create token")
    text = page.get_attribute("[data-new-token] button", "data-text")
    headers = {"Authorization": f"Bearer {text}", "User-Agent": "ci-runner/1.2"}
    assert httpx.get(f"{hub.url}/api/v1/me/", headers=headers).json()["user"] == name
    page.goto(page.url.replace("tokens/", ""))
    assert "by ci-runner/1.2" in page.inner_text("body")
    page.click("button:text-is('Delete')")
    assert f"{name} is deleted for good" in page.inner_text("dialog h2")
    page.click("dialog button:text-is('Delete')")
    page.wait_for_selector("text=Its runs stay.")
    assert httpx.get(f"{hub.url}/api/v1/me/", headers=headers).status_code == httpx.codes.UNAUTHORIZED
