"""S6: an owner stores a channel whose address is markup; another owner opens the form of that channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub
from tests.signing_in import note_dialogs, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MARKUP = '"<svg/onload=alert(document.domain)>"@x.com'
"""A mail address that Django's own check accepts."""


@pytest.fixture(scope="module")
def mail_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub that can send mail, so that mail addresses are accepted as targets."""
    running = Hub(tmp_path_factory.mktemp("mail") / "data", EMAIL_URL="smtp://127.0.0.1:9")
    try:
        yield running.start()
    finally:
        running.stop()


def test_markup_in_a_mail_address_is_shown_as_text(browser: Any, mail_hub: Hub) -> None:
    with mail_hub.client() as owner:
        channel = {
            "kind": "mail",
            "name": "ops",
            "target": MARKUP,
            "scope": "workspace",
            "events": ["run.failed"],
        }
        answer = owner.post("/api/v1/notification-channels/", json=channel)
        assert answer.status_code == 201, answer.text
    context = browser.new_context(base_url=mail_hub.browser_url, storage_state=sign_in(browser, mail_hub))
    tab = context.new_page()
    dialogs: list[str] = []
    note_dialogs(tab, dialogs)
    tab.goto(f"/settings/notifications/{answer.json()['id']}/")
    help_text = tab.locator(".th-help", has_text="@x.com")
    assert MARKUP in help_text.inner_text()
    assert tab.locator(".th-help svg").count() == 0
    assert dialogs == []
    context.close()
