"""A person makes an environment, mends a conflict that the page names, and runs with it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.environments.package_index import PackageIndex
from tests.hub import Hub
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.browser]
USE = "import tinylib\nprint(tinylib.VERSION)\n"


def test_from_a_conflict_to_a_run(page: Any, hub: Hub, index: PackageIndex, tmp_path: Any) -> None:
    index.add("base", "1.0")
    index.add("tinylib", "1.0", "base")
    index.add("tinylib", "2.0", "base>=2")
    file = tmp_path / "requirements.txt"
    file.write_text(f"--index-url {index.url}\ntinylib==2.0\n")

    page.goto("/environments/new/")
    page.set_input_files("#file", file)
    expect(page.locator("#source")).to_have_value(file.read_text())
    page.fill("#name", "browsed")
    page.fill("#python", "3.11")
    page.click("text=Make the environment")
    page.wait_for_url("**/environments/browsed/versions/1/")
    expect(page.locator(".th-note")).to_contain_text("tinylib==2.0", timeout=60_000)
    expect(page.locator(".th-note")).to_contain_text("there is only base==1.0")

    page.click("text=Edit it")
    expect(page.locator("#source")).to_have_value(f"--index-url {index.url}\ntinylib==2.0\n")
    page.fill("#source", f"--index-url {index.url}\ntinylib<2\n")
    page.click("text=Make the version")
    page.wait_for_url("**/environments/browsed/versions/2/")
    # The buttons outside of the part that refreshes are there, too, without a reload by hand.
    expect(page.locator("text=New run with it")).to_be_visible(timeout=60_000)
    expect(page.locator("[aria-labelledby=en-lock]")).to_contain_text("tinylib")

    run = submit(hub, USE, environment={"name": "browsed"})
    wait_for(hub, run, "Completed", seconds=180)
    assert log(hub, run) == b"1.0\n"
    page.reload()
    expect(page.locator("[aria-labelledby=en-nodes]")).to_contain_text("1 of 1 node")
