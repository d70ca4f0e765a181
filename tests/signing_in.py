"""Signing in to a hub by its page, as a person does."""

from __future__ import annotations

from typing import Any

import httpx

from tests.hub import Hub


def sign_in(browser: Any, hub: Hub, name: str = "admin", password: str = "") -> Any:
    """Signs `name` in and returns what the browser keeps of that: a storage state for further contexts."""
    context = browser.new_context(base_url=hub.browser_url, ignore_https_errors=True)
    tab = context.new_page()
    tab.goto("/sign-in/")
    tab.fill("input[name=username]", name)
    tab.fill("input[name=password]", password or hub.password)
    tab.press("input[name=password]", "Enter")
    tab.wait_for_url(f"{hub.browser_url}/")
    kept = context.storage_state()
    context.close()
    return kept


def note_dialogs(tab: Any, found: list[str]) -> None:
    """From now on `found` gets the text of each dialog that a page opens; the dialog is closed."""

    def note(dialog: Any) -> None:
        found.append(dialog.message)
        dialog.dismiss()

    tab.on("dialog", note)


def page_client(hub: Hub, name: str = "admin", password: str = "") -> httpx.Client:
    """A program that has signed in by the page, and so keeps a session as a browser does."""
    client = hub.client("")
    client.get("/sign-in/").raise_for_status()
    token = client.cookies[hub.cookie("csrftoken")]
    form = {"username": name, "password": password or hub.password, "csrfmiddlewaretoken": token}
    answer = client.post("/sign-in/", data=form, headers={"Referer": hub.url})
    assert answer.status_code == httpx.codes.FOUND, answer.text
    return client
