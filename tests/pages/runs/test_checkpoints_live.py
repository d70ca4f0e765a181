"""From a saved checkpoint to the run that goes on from it, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.browsing import number_of
from tests.runs import log, submit, told, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Saves the next step, and says with which one it began.
COUNTS = """
import os, pathlib
file = pathlib.Path(os.environ['TRAINHUB_CHECKPOINT_DIR']) / 'last.txt'
step = int(file.read_text()) if file.exists() else 0
print('began at step', step)
new = file.with_name('.new')
new.write_text(str(step + 1))
new.rename(file)
"""


@pytest.fixture
def number(hub: Hub) -> int:
    run = submit(hub, COUNTS)
    assert wait_for(hub, run)["state"] == "Completed"
    return number_of(hub, run)


def ended_log(hub: Hub, page: Any) -> str:
    """Of the run whose page is open."""
    address = re.search(r"/runs/(\d+)/", page.url)
    assert address is not None
    with hub.client() as client:
        runs = client.get("/api/v1/runs/").raise_for_status().json()["results"]
    (run,) = [row["id"] for row in runs if row["number"] == int(address[1])]
    assert wait_for(hub, run)["state"] == "Completed", told(hub, run)
    return log(hub, run).decode()


def test_resume_starts_a_run_that_begins_with_it(page: Any, hub: Hub, number: int) -> None:
    page.goto(f"/runs/{number}/checkpoints/")
    page.get_by_role("button", name="Resume from checkpoint 1").click()
    page.wait_for_url(lambda url: f"/runs/{number}/" not in url)
    assert "began at step 1" in ended_log(hub, page)
    page.get_by_role("link", name="Checkpoints").click()
    page.get_by_text("this attempt began with 1").wait_for()
    page.get_by_text(f"from run {number}").wait_for()


def test_one_in_a_datastore_is_chosen_in_the_wizard_and_shown_with_its_place(
    page: Any, hub: Hub, tmp_path: Path
) -> None:
    with hub.client() as client:
        place = {"name": "results", "kind": "folder", "path": str(tmp_path)}
        client.post("/api/v1/datastores/", json=place).raise_for_status()
    first = submit(hub, COUNTS)
    assert wait_for(hub, first)["state"] == "Completed"
    page.goto(f"/runs/{number_of(hub, first)}/checkpoints/")
    page.get_by_role("button", name="Clone from checkpoint 1").click()
    page.wait_for_url("**/review/")
    page.goto(page.url.replace("/review/", "/resources/"))
    page.get_by_label("Checkpoints go to").select_option("results")
    page.get_by_label("Folder of the checkpoints there").fill("counts")
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**/environment/")
    page.goto(page.url.replace("/environment/", "/review/"))
    assert page.get_by_text("results, counts").is_visible()
    page.get_by_role("button", name="Submit the run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    assert "began at step 1" in ended_log(hub, page)
    page.get_by_role("link", name="Checkpoints").click()
    (run,) = (path.name for path in (tmp_path / "counts").iterdir())
    folder = tmp_path / "counts" / run / "checkpoints"
    page.get_by_text(f"Their files lie in {folder}").wait_for()
    page.get_by_role("button", name="Resume from checkpoint 2").click()
    page.wait_for_url(lambda url: "/checkpoints/" not in url)
    assert "began at step 2" in ended_log(hub, page)
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    assert (file.name, file.read_text(), file.parent.parent.name) == ("last.txt", "2", "2")


def test_clone_opens_the_wizard_with_it(page: Any, hub: Hub, number: int) -> None:
    page.goto(f"/runs/{number}/checkpoints/")
    page.get_by_role("button", name="Clone from checkpoint 1").click()
    page.wait_for_url("**/review/")
    page.get_by_text("checkpoint 1 of run").wait_for()
    page.get_by_role("button", name="Submit the run").click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    assert "began at step 1" in ended_log(hub, page)
