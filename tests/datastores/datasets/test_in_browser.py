"""A dataset in a browser, on a real hub: made, refreshed, read by a run, and found again from the model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.hub import Hub
from tests.runs import submit, wait_for
from tests.stores.s3_server import PUBLIC, S3Server

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TRAINS = """
import os, pathlib
pathlib.Path("outputs").mkdir(exist_ok=True)
names = sorted(path.name for path in pathlib.Path(os.environ["TRAINHUB_INPUT_BIRDS"]).rglob("*.jpg"))
pathlib.Path("outputs/model.txt").write_text(" ".join(names))
"""


@pytest.fixture
def store() -> Iterator[S3Server]:
    store = S3Server()
    store.objects[PUBLIC] = {f"2024/{name}.jpg": name.encode() for name in ("eagle", "owl", "sparrow")}
    yield store
    store.close()


def test_from_files_to_a_model_and_back(page: Any, hub: Hub, store: S3Server) -> None:
    with hub.client() as client:
        place = {"kind": "s3", "bucket": PUBLIC, "endpoint": store.url, "sign_in": "none"}
        client.post("/api/v1/datastores/", json={"name": "bird-photos", **place}).raise_for_status()

    page.goto("/data/")
    page.get_by_role("link", name="New dataset").click()
    page.get_by_label("Name").fill("photographed")
    page.get_by_label("Datastore").select_option("bird-photos")
    page.get_by_label("Path").fill("2024")
    page.get_by_role("button", name="List the files").click()
    # The page shows the end of the listing by itself.
    page.get_by_text("Ready", exact=True).wait_for()
    store.objects[PUBLIC] |= {"2024/wren.jpg": b"wren", "2024/owl.jpg": b"another owl"}
    del store.objects[PUBLIC]["2024/eagle.jpg"]
    page.get_by_role("button", name="Refresh").click()
    for words, name in (("added", "wren.jpg"), ("removed", "eagle.jpg"), ("changed", "owl.jpg")):
        page.get_by_text(f"1 file {words}").click()
        assert page.locator("details[open] li").get_by_text(name).is_visible()

    run = submit(hub, TRAINS, inputs={"birds": {"dataset": "photographed"}})
    number = wait_for(hub, run, "Completed")["number"]
    with hub.client() as client:
        body = {"run": run, "path": "model.txt"}
        client.post("/api/v1/models/flight/versions/", json=body).raise_for_status()
        model = client.get("/api/v1/models/flight/versions/1/files/model.txt")
    assert (model.status_code, model.text) == (httpx.codes.OK, "owl.jpg sparrow.jpg wren.jpg")
    page.reload()
    page.get_by_role("link", name="flight 1").click()
    page.get_by_label("Where it comes from").get_by_role("link", name="photographed").click()
    page.wait_for_url(re.compile(r"/data/sets/photographed/2/$"))
    page.locator(f"a[href='/runs/{number}/']").first.click()
    page.get_by_role("link", name="photographed, version 2").click()
    page.get_by_text("sparrow.jpg").wait_for()
