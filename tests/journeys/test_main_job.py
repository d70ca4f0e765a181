"""The main job, in a browser: configure, see what will run, submit, watch, download, register."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub
from tests.journeys.runs import ENVIRONMENT_BUILD_S

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.frameworks]
MINUTES = ENVIRONMENT_BUILD_S * 1000


def test_a_ddp_run_from_the_wizard_to_the_registry(page: Any, hub: Hub, tmp_path: Path) -> None:
    configure(page)
    page.get_by_role("button", name="Submit the run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    watch_both_ranks(page)
    page.get_by_text("Completed", exact=True).first.wait_for(timeout=MINUTES)
    download(page, tmp_path / "model.pt")
    register(page)


def configure(page: Any) -> None:
    """Take the example, which leads straight to the review; go back and walk through every step all the
    same."""
    page.get_by_role("link", name="New run").first.click()
    page.get_by_role("button", name=re.compile("Digits, distributed")).click()
    page.get_by_role("heading", name="Review and submit").wait_for()
    page.locator(".wz-steps .wz-step").first.click()
    for _ in range(4):
        here = page.url
        page.locator(".wz-buttons button[value=next]").click()
        page.wait_for_url(lambda url, here=here: url != here)
    page.get_by_role("heading", name="Review and submit").wait_for()
    page.get_by_text("WORLD_SIZE").first.wait_for()
    assert page.locator(".wz-table tbody tr").count() == 2


def watch_both_ranks(page: Any) -> None:
    """Lines of both ranks move while the run runs."""
    for rank in (0, 1):
        page.locator(f"a.lane[data-rank='{rank}']").click(timeout=MINUTES)
        page.locator(".log-view").get_by_text(re.compile(r"epoch +\d+/20")).first.wait_for(timeout=MINUTES)


def download(page: Any, to: Path) -> None:
    page.get_by_role("link", name=re.compile("^Outputs")).click()
    with page.expect_download() as coming:
        page.locator("tr", has_text="model.pt").locator("a[download]").first.click()
    coming.value.save_as(to)
    assert zipfile.is_zipfile(to), "torch writes a model as a zip"


def register(page: Any) -> None:
    row = page.locator("tr", has_text="model.pt")
    row.get_by_role("link", name=re.compile("Register")).click()
    page.fill("input[name=name]", "digits-of-the-browser")
    page.get_by_role("button", name="Register").click()
    page.get_by_role("heading", level=1, name="digits-of-the-browser").wait_for()
    assert page.get_by_text("model.pt").first.is_visible()
