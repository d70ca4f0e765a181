"""Outputs of a run become a dataset on its page, which another run reads."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.hub import Hub
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.browser]
EXTRACTS = """
import pathlib
for name in ("owl", "wren"):
    path = pathlib.Path("outputs/features/2024") / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name * 1000)
pathlib.Path("outputs/model.pt").write_text("no data")
"""
READS = """
import os, pathlib
folder = pathlib.Path(os.environ["TRAINHUB_INPUT_FEATURES"])
print(*sorted(f"{path.relative_to(folder)}={path.stat().st_size}" for path in folder.rglob("*.*")))
pathlib.Path("outputs").mkdir(exist_ok=True)
pathlib.Path("outputs/model.pt").write_text("learned")
"""


def test_from_a_run_to_a_dataset_that_another_run_reads(page: Any, hub: Hub) -> None:
    number = wait_for(hub, submit(hub, EXTRACTS), "Completed")["number"]
    dataset, model, address = f"extracted-{number}", f"flight-{number}", rf"/data/sets/extracted-{number}/1/$"
    page.goto(f"/runs/{number}/outputs/")
    page.get_by_role("link", name="features/", exact=True).click()
    page.get_by_role("link", name="2024/", exact=True).wait_for()
    page.get_by_role("link", name="Make a dataset").click()
    page.get_by_label("Dataset", exact=True).fill(dataset)
    page.get_by_role("button", name="Make the version").click()
    page.wait_for_url(re.compile(address))
    page.get_by_text("2024/owl.txt").wait_for()

    reader = submit(hub, READS, inputs={"features": {"dataset": dataset}})
    read = wait_for(hub, reader, "Completed")["number"]
    assert log(hub, reader).decode().strip() == "2024/owl.txt=3000 2024/wren.txt=4000"
    with hub.client() as client:
        body = {"run": reader, "path": "model.pt"}
        client.post(f"/api/v1/models/{model}/versions/", json=body).raise_for_status()

    # From the version back to the run, and on to who learned from it.
    with page.expect_response(re.compile(r"/data/sets/.*/models/$")) as models:
        page.reload()
    assert models.value.ok, models.value.text()
    page.get_by_role("link", name=f"{model} 1").wait_for()
    # Also if the hub has an error, or does not answer, meanwhile.
    for failure in (lambda route: route.fulfill(status=503), lambda route: route.abort()):
        page.route(re.compile(r"/data/sets/.*/models/$"), failure, times=1)
        page.reload()
        page.get_by_role("link", name=f"{model} 1").wait_for()
    assert page.locator(f"a[href='/runs/{read}/']").first.is_visible()
    page.get_by_role("link", name=f"run {number}", exact=True).click()
    page.get_by_role("link", name=f"{dataset}, version 1").click()
    page.wait_for_url(re.compile(address))

    # Tags lead from one dataset to all that have them.
    page.get_by_role("link", name=dataset, exact=True).click()
    page.get_by_placeholder("name=value").fill("species=owl")
    page.get_by_role("button", name="Set tag").click()
    page.get_by_role("link", name="species=owl").click()
    page.wait_for_url(re.compile(r"/data/\?tag=species%3Dowl$"))
    page.get_by_role("link", name=dataset, exact=True).wait_for()
