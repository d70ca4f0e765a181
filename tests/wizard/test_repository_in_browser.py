"""From the address of a repository to a run that has ended, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.environments.source_builds.git_server import GitServer
from tests.hub import Hub
from tests.runs import told, wait_for


@pytest.mark.slow
@pytest.mark.browser
def test_a_run_from_a_repository_tells_its_commit(page: Any, hub: Hub, tmp_path: Path) -> None:
    with GitServer(tmp_path).serving() as git:
        commit = git.commit("journey", {"train.py": "print('one step')\n"})
        page.goto("/runs/new/")
        page.locator("summary", has_text="git repository").click()
        page.fill("#start-repository", git.url("journey"))
        page.locator("button", has_text="Fetch").click()
        page.wait_for_url("**/source/")
    expect(page.locator(".wz-chosen-name")).to_contain_text(f"Commit {commit[:10]} of main, 1 file.")
    page.locator(".wz-step", has_text="Review").click()
    page.locator(".wz-submit").click()
    page.wait_for_url("**/runs/*/")
    number = page.url.rstrip("/").rpartition("/")[2]
    run = wait_for(hub, told(hub, number)["id"], "Completed")
    assert run["spec"]["source"]["commit"] == commit
    page.goto(f"/runs/{number}/overview/")
    about = page.locator("[aria-labelledby=ov-source]")
    for words in (commit[:8], "on main", git.url("journey")):
        expect(about).to_contain_text(words)
