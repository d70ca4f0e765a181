"""Second factors in Chromium: an app's codes computed here, and a virtual authenticator for passkeys."""

from __future__ import annotations

import time
from typing import Any

import pyotp
import pytest

from tests.hub import Hub
from tests.people import PASSWORD
from tests.signing_in import sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def person(hub: Hub, confirmed_page: Any) -> str:
    """The name of a new member with the usual password."""
    name = f"nora-{time.time_ns()}"
    hub.manage(
        "shell",
        "-c",
        "from workspaces.models import *\n"
        f"user = User.objects.create_user({name!r}, password={PASSWORD!r})\n"
        "workspace = Workspace.objects.get(slug='default')\n"
        "Membership.objects.create(workspace=workspace, user=user, role='contributor')",
    )
    return name


def type_password(tab: Any, name: str) -> None:
    tab.goto("/sign-in/")
    tab.fill("input[name=username]", name)
    tab.fill("input[name=password]", PASSWORD)
    tab.press("input[name=password]", "Enter")
    tab.wait_for_selector("h1:text-is('Second step')")


def test_an_app_and_its_recovery_codes(hub: Hub, browser: Any, person: str) -> None:
    context = browser.new_context(
        base_url=hub.browser_url, storage_state=sign_in(browser, hub, person, PASSWORD)
    )
    tab = context.new_page()
    tab.goto("/settings/")
    tab.click("a:text-is('Second factor')")
    tab.click("text=Set up an app")
    secret = tab.get_attribute("[data-secret] button", "data-text")
    assert tab.evaluate("document.querySelector('.th-qr').naturalWidth") > 100, "the picture is drawn"
    app, now = pyotp.TOTP(secret), int(time.time())
    tab.fill("input[name=code]", app.at(now - 30))
    tab.click("text=Confirm the code")
    codes = tab.locator("[data-recovery-codes] li").all_inner_texts()
    assert len(codes) == 10

    other = browser.new_context(base_url=hub.browser_url).new_page()
    type_password(other, person)
    other.fill("input[name=code]", app.at(now))
    other.press("input[name=code]", "Enter")
    other.wait_for_url(f"{hub.browser_url}/")

    third = browser.new_context(base_url=hub.browser_url).new_page()
    type_password(third, person)
    third.fill("input[name=code]", app.at(now))
    third.press("input[name=code]", "Enter")
    third.wait_for_selector("text=This code is wrong, has expired or was used already.")
    third.fill("input[name=code]", codes[3])
    third.press("input[name=code]", "Enter")
    third.wait_for_url(f"{hub.browser_url}/")


def test_a_passkey(hub: Hub, browser: Any, person: str) -> None:
    context = browser.new_context(
        base_url=hub.browser_url, storage_state=sign_in(browser, hub, person, PASSWORD)
    )
    tab = context.new_page()
    session = context.new_cdp_session(tab)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    tab.goto("/settings/factors/")
    tab.click("text=Add a passkey")
    tab.fill("#new-passkey input[name=name]", "laptop")
    tab.click("text=Make the passkey")
    tab.wait_for_selector("text=The passkey laptop is a second factor now.")
    assert tab.locator("[data-recovery-codes] li").count() == 10
    tab.click("header summary")
    tab.click("text=Sign out")
    tab.wait_for_url(f"{hub.browser_url}/sign-in/")
    type_password(tab, person)
    tab.click("text=Use a passkey")
    tab.wait_for_url(f"{hub.browser_url}/")
    tab.goto("/settings/factors/")
    assert "laptop" in tab.inner_text("#passkeys")

    without = browser.new_context(base_url=hub.browser_url).new_page()
    empty = without.context.new_cdp_session(without)
    empty.send("WebAuthn.enable")
    empty.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    type_password(without, person)
    without.click("text=Use a passkey")
    without.wait_for_selector("text=no passkey was used")
    without.goto("/")
    without.wait_for_url(f"{hub.browser_url}/sign-in/**")
