"""Somebody is invited by mail, changes their address, and forgets the password, in Chromium and with a real
mail server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub
from tests.people import PASSWORD
from tests.signing_in import sign_in
from tests.workspaces.mail.mailbox import Mailbox, path_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ADDRESS = "nora@example.org"


@pytest.fixture(scope="module")
def post() -> Iterator[Mailbox]:
    mailbox = Mailbox().start()
    yield mailbox
    mailbox.stop()


@pytest.fixture(scope="module")
def mail_hub(tmp_path_factory: pytest.TempPathFactory, post: Mailbox) -> Iterator[Hub]:
    running = Hub(tmp_path_factory.mktemp("mail-hub") / "data", EMAIL_URL=f"smtp://127.0.0.1:{post.port}")
    running.is_recorded = True
    yield running.start()
    running.stop()


def open_tab(browser: Any, hub: Hub, session: Any = None) -> Any:
    return browser.new_context(base_url=hub.browser_url, storage_state=session).new_page()


def choose_password(tab: Any, password: str) -> None:
    for field in ("new_password1", "new_password2"):
        tab.fill(f"input[name={field}]", password)


def test_from_an_invitation_to_a_new_password(browser: Any, mail_hub: Hub, post: Mailbox) -> None:
    owner = open_tab(browser, mail_hub, sign_in(browser, mail_hub))
    owner.goto("/settings/")
    owner.click("text=invite by mail or link")
    owner.fill("input[name=address]", ADDRESS)
    owner.click("button:text-is('Invite')")
    owner.wait_for_selector(f"text=An invitation is on its way to {ADDRESS}.")

    nora = open_tab(browser, mail_hub)
    nora.goto(path_in(post.letter_to(ADDRESS, "Invitation")))
    nora.fill("input[name=username]", "nora")
    choose_password(nora, PASSWORD)
    nora.click("text=Make the account")
    nora.wait_for_selector("text=Your account nora is there.")
    session = sign_in(browser, mail_hub, "nora", PASSWORD)

    nora = open_tab(browser, mail_hub, session)
    nora.goto("/settings/profile/")
    assert ADDRESS in nora.inner_text("#mail")
    nora.fill("input[name=address]", "nora@example.com")
    nora.click("text=Send the link")
    nora.wait_for_selector("text=Not confirmed yet")
    nora.goto(path_in(post.letter_to("nora@example.com", "Confirm")))
    nora.click("text=Confirm the address")
    nora.wait_for_selector("text=nora@example.com is the address of nora now.")
    assert "was changed" in post.letter_to(ADDRESS, "changed")["Subject"]

    forgetful = open_tab(browser, mail_hub)
    forgetful.goto("/sign-in/")
    forgetful.click("text=Forgot the password?")
    forgetful.fill("input[name=name]", "nora")
    forgetful.click("text=Send a link")
    forgetful.wait_for_selector("text=If somebody here has this name or address")
    forgetful.goto(path_in(post.letter_to("nora@example.com", "new password")))
    choose_password(forgetful, "another good password")
    forgetful.click("text=Set the password")
    forgetful.wait_for_url(f"{mail_hub.browser_url}/sign-in/")
    nora.goto("/settings/")
    nora.wait_for_url(f"{mail_hub.browser_url}/sign-in/**")
    sign_in(browser, mail_hub, "nora", "another good password")
