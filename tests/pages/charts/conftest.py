"""Tabs for tests of charts: those of a file share a context, and the scripts that the browser keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub

WINDOW = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def signed_in_context(browser: Any, hub: Hub, signed_in: Any) -> Iterator[Any]:
    made = browser.new_context(base_url=hub.browser_url, viewport=WINDOW, storage_state=signed_in)
    yield made
    made.close()


@pytest.fixture
def page(signed_in_context: Any) -> Iterator[Any]:
    """An empty tab, signed in as the owner of `hub`, at 1440 px."""
    tab = signed_in_context.new_page()
    yield tab
    tab.evaluate("localStorage.clear()")  # what the test has chosen
    tab.close()
