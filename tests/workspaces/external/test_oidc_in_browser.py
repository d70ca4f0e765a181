"""Signing in by a real provider of OpenID Connect, in Chromium: the whole exchange, groups that change, a
provider that is down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.hub import Hub
from tests.signing_in import sign_in
from tests.workspaces.external.provider import SECRET, OidcProvider, sign_in_at_provider

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADA = {
    "preferred_username": "ada",
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "email_verified": True,
    "groups": ["vision"],
}
BUTTON = "button:has-text('Sign in with Example ID')"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    running = OidcProvider(tmp_path_factory.mktemp("provider"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def oidc_hub(tmp_path_factory: pytest.TempPathFactory, provider: OidcProvider) -> Iterator[Hub]:
    running = Hub(
        tmp_path_factory.mktemp("oidc-hub") / "data",
        OIDC_ISSUER=provider.issuer,
        OIDC_CLIENT_ID="trainhub",
        OIDC_CLIENT_SECRET=SECRET,
        OIDC_NAME="Example ID",
        OIDC_SCOPES="openid,profile,email,groups",
        SIGN_IN_GROUPS="vision=default:contributor; leads=default:owner",
    )
    running.is_recorded = True
    running.start()
    provider.start(f"{running.browser_url}/sign-in/oidc/callback/")
    yield running
    running.stop()


def tab_of(browser: Any, hub: Hub, session: Any = None) -> Any:
    return browser.new_context(base_url=hub.browser_url, storage_state=session).new_page()


def come_in(browser: Any, hub: Hub, name: str) -> Any:
    """A browser in which somebody has signed in by the provider, or was refused."""
    tab = tab_of(browser, hub)
    tab.goto("/sign-in/")
    tab.click(BUTTON)
    sign_in_at_provider(tab, name)
    tab.wait_for_url(re.compile(rf"{re.escape(hub.browser_url)}/(sign-in/)?$"))
    return tab


def test_groups_are_followed_at_each_sign_in(browser: Any, oidc_hub: Hub, provider: OidcProvider) -> None:
    provider.accounts(ada=ADA)
    tab = come_in(browser, oidc_hub, "ada")
    tab.click("header summary")
    assert "Ada Lovelace (ada)" in tab.inner_text("header details")
    assert "contributor of Default" in tab.inner_text("header details")
    provider.accounts(ada={**ADA, "groups": ["leads"]})
    tab = come_in(browser, oidc_hub, "ada")
    tab.goto("/settings/")
    assert "by group" in tab.inner_text("#members")
    assert tab.locator("text=Add member").count() == 1, "an owner now"
    provider.accounts(ada={**ADA, "groups": []})
    tab = come_in(browser, oidc_hub, "ada")
    assert "You are not a member of any workspace here" in tab.inner_text("body")
    with oidc_hub.client() as client:
        events = client.get("/api/v1/audit/?actor=OIDC").json()["results"]
    assert [event["verb"] for event in events] == ["member.removed", "member.role_changed", "member.added"]


def test_deactivated_people_are_refused(browser: Any, oidc_hub: Hub, provider: OidcProvider) -> None:
    provider.accounts(bob={**ADA, "preferred_username": "bob", "email": "bob@example.org"})
    come_in(browser, oidc_hub, "bob")
    oidc_hub.manage("person", "deactivate", "bob")
    tab = come_in(browser, oidc_hub, "bob")
    assert "The account bob is deactivated." in tab.inner_text("body")
    assert tab.url.endswith("/sign-in/")


def test_a_name_that_is_taken_is_refused_until_its_person_connects_the_account(
    browser: Any, oidc_hub: Hub, provider: OidcProvider
) -> None:
    provider.accounts(root={"preferred_username": "admin", "email": "root@example.org"})
    tab = come_in(browser, oidc_hub, "root")
    assert "Somebody here is called admin already." in tab.inner_text("body")
    owner = tab_of(browser, oidc_hub, sign_in(browser, oidc_hub))
    owner.goto("/settings/profile/")
    owner.click("text=Connect Example ID")
    sign_in_at_provider(owner, "root")
    owner.wait_for_selector("text=You can sign in with Example ID now.")
    tab = come_in(browser, oidc_hub, "root")
    tab.goto("/settings/profile/")
    assert "connected" in tab.inner_text("#connected")


def test_the_exchange_begins_by_post_only_and_needs_its_own_state(
    oidc_hub: Hub, provider: OidcProvider
) -> None:
    with oidc_hub.client("") as client:
        assert client.get("/sign-in/oidc/").status_code == httpx.codes.METHOD_NOT_ALLOWED
        assert client.post("/sign-in/oidc/").status_code == httpx.codes.FORBIDDEN, "no CSRF token"
        answer = client.get("/sign-in/oidc/callback/?code=stolen&state=foreign")
        assert answer.headers["Location"] == "/sign-in/"
        assert "Example ID gave an answer that cannot be used." in client.get("/sign-in/").text
        page = client.get("/sign-in/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "next": "https://elsewhere.example/"}
        answer = client.post("/sign-in/oidc/", data=form, headers={"Referer": oidc_hub.url})
    address = answer.headers["Refresh"]
    assert address.startswith("0; url=")
    assert "code_challenge_method=S256" in address
    assert "state=" in address
    assert "elsewhere" not in address + answer.text


def test_a_provider_that_is_down_leaves_the_password(
    browser: Any, oidc_hub: Hub, provider: OidcProvider
) -> None:
    """The discovery is cached for minutes, so the web server is started anew."""
    provider.stop()
    oidc_hub.kill("web")
    tab = tab_of(browser, oidc_hub)
    tab.goto("/sign-in/")
    tab.click(BUTTON)
    tab.wait_for_selector("text=Example ID cannot be reached at present.")
    sign_in(browser, oidc_hub)
    provider.start(provider.redirect_uri)
