"""Outputs that lie in a datastore, on the page of a run and of a model: seen, downloaded, registered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub
from tests.pages.logs.training_log import Logged, begin
from tests.stores.s3_server import PUBLIC, S3Server

pytestmark = pytest.mark.browser
WEIGHTS = b"weights" * 300_000
LONG = "predictions/of-the-best-model-on-all-images-of-the-year.csv"
# What the hub records when the nodes of a run report that they have put these files there.
ROWS = """
from datastores.models import Datastore
from jobs.models import OutputFolder, Run
run = Run.objects.get(pk={run!r})
run.spec = {{"outputs": {{"datastore": "stored-results"}}}}
run.save()
datastore = Datastore.objects.get(name="stored-results")
folder = OutputFolder.objects.create(
    run=run, attempt=0, datastore=datastore, path="runs/7/0", place=datastore.place + "/7/0"
)
for path, size, sha256 in {files!r}:
    folder.files.create(path=path, key=path, size_bytes=size, digest=sha256, node_rank=0)
"""


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    store = S3Server()
    yield store
    store.close()


@pytest.fixture(scope="module")
def run(hub: Hub, store: S3Server) -> Logged:
    files = {"model.pt": WEIGHTS, "checkpoints/last.pt": b"last", "checkpoints/best.pt": b"best", LONG: b""}
    store.objects[PUBLIC] = {f"runs/7/0/{path}": content for path, content in files.items()}
    with hub.client() as client:
        place = {"kind": "s3", "bucket": PUBLIC, "path": "runs", "endpoint": store.url, "sign_in": "none"}
        client.post("/api/v1/datastores/", json={"name": "stored-results", **place}).raise_for_status()
    run = begin(hub, "stored")
    run.put("README.md", b"# Results")
    run.put("checkpoints/notes.txt", b"good")
    listed = [(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in files.items()]
    hub.manage("shell", "-c", ROWS.format(run=run.id, files=listed))
    run.end()
    return run


def test_a_file_is_found_downloaded_and_registered(page: Any, run: Logged, store: S3Server) -> None:
    page.goto(f"/runs/{run.number}/outputs/")
    page.get_by_text("4 files lie in a datastore").wait_for()
    assert page.get_by_text("s3://public/runs/7/0/model.pt").is_visible()
    # A zip is offered for files of the hub alone.
    assert page.get_by_role("button", name="Download all").count() == 0
    assert page.get_by_label("Select model.pt").count() == 0
    page.get_by_label("Select README.md").check()
    page.get_by_role("button", name="Download selected").wait_for()

    page.get_by_role("link", name="model.pt", exact=True).click()
    panel = page.locator(".ar-file")
    panel.get_by_text("size and SHA-256 as reported by the node").wait_for()
    with page.expect_download() as download:
        panel.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "model.pt"
    assert download.value.path().read_bytes() == WEIGHTS

    panel.get_by_role("link", name="Register").click()
    page.get_by_label("Model", exact=True).fill("birds-stored")
    page.get_by_role("button", name="Register").click()
    page.get_by_text("1 file lies in a datastore").wait_for()
    page.get_by_text(
        "It was not scanned: it lies in a datastore, at s3://public/runs/7/0/model.pt"
    ).wait_for()
    assert page.get_by_role("button", name="Download all as a zip").is_disabled()


def test_a_folder_has_both_kinds_of_files(page: Any, run: Logged) -> None:
    page.goto(f"/runs/{run.number}/outputs/?path=checkpoints")
    page.get_by_text("2 files lie in a datastore").wait_for()
    names = page.locator(".ar-folder .ar-name a").all_inner_texts()
    assert [name.strip() for name in names] == ["best.pt", "last.pt", "notes.txt"]


def test_a_long_place_fits_on_a_phone(page: Any, run: Logged) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/runs/{run.number}/outputs/?file={LONG}")
    page.locator(".ar-facts").get_by_text(LONG).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= 390")
