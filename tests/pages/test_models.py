"""Models in a browser: register from the run's page, download, verify; upload what is dangerous and be asked
first."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub, eventually
from tests.runs import submit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SCRIPT = """
import json, pathlib
saved = pathlib.Path("outputs/saved")
saved.mkdir(parents=True)
(saved / "config.json").write_text(json.dumps({"layers": 3}))
(saved / "weights.bin").write_bytes(bytes(range(256)))
"""


class Dangerous:
    def __reduce__(self) -> Any:
        return subprocess.call, (["true"],)


def scanned(hub: Hub, model: str) -> None:
    with hub.client() as client:
        eventually(
            lambda: client.get(f"/api/v1/models/{model}/versions/1/").json()["scan"] != "pending",
            60,
            "the scan is done",
        )


def saved(page: Any, click: Any, folder: Path) -> Path:
    with page.expect_download() as coming:
        click()
    path: Path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


def test_register_from_the_runs_page_download_and_verify_elsewhere(
    page: Any, hub: Hub, tmp_path: Path
) -> None:
    run = submit(hub, SCRIPT, display_name="trained for the shelf")
    number = wait_for(hub, run, "Completed")["number"]
    page.goto(f"/register/?run={number}&path=saved")
    page.get_by_label("Model", exact=True).fill("on the shelf")
    page.get_by_role("button", name="Register").click()
    page.wait_for_url(re.compile(r"/models/on%20the%20shelf/versions/1/$"))
    assert page.get_by_role("link", name=f"run {number}").first.is_visible()
    archive = saved(page, page.get_by_role("button", name="Download all as a zip").click, tmp_path)
    verifier = saved(page, page.get_by_role("link", name="Verifier").click, tmp_path)
    command = [sys.executable, "-I", str(verifier), str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1][:33]) == (0, "VERIFIED: on the shelf version 1:")
    archive.write_bytes(archive.read_bytes().replace(bytes(range(255)), bytes(range(254)) + b"!"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "weights.bin differs" in done.stdout) == (1, True)


def test_what_is_dangerous_is_flagged_and_asked_about_before_the_download(
    page: Any, hub: Hub, tmp_path: Path
) -> None:
    page.goto("/upload/")
    page.get_by_label("Model", exact=True).fill("from somewhere")
    page.get_by_role("button", name="Upload and register").click()
    page.get_by_text("Choose at least one file.").wait_for()
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Dangerous()))
    page.locator("#chosen").set_input_files(str(tmp_path / "model.pkl"))
    page.get_by_label("Description").fill("sent by *mail*")
    page.get_by_role("button", name="Upload and register").click()
    page.wait_for_url(re.compile(r"/models/from%20somewhere/versions/1/$"))
    scanned(hub, "from somewhere")
    page.reload()
    page.get_by_text("Loading this model can run any program.").wait_for()
    assert page.get_by_text("subprocess.call").first.is_visible()
    page.get_by_role("button", name="Download model.pkl").click()
    dialog = page.locator("dialog")
    assert "Found: subprocess.call." in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Download model.pkl").click()
    path = saved(page, page.locator("dialog").get_by_role("button", name="Download").click, tmp_path)
    assert path.read_bytes() == pickle.dumps(Dangerous())


def test_an_owner_names_protects_and_deletes(page: Any, hub: Hub) -> None:
    with hub.client() as client:
        client.post(
            "/api/v1/models/to%20go/versions/upload", files=[("files", ("a.txt", b"a"))]
        ).raise_for_status()
    page.goto("/models/to%20go/versions/1/")
    page.get_by_role("textbox", name="Alias").fill("production")
    page.get_by_role("button", name="Set alias").click()
    page.locator(".md-naming .th-alias", has_text="production").wait_for()
    page.get_by_role("textbox", name="Tag").fill("team=vision")
    page.get_by_role("button", name="Set tag").click()
    page.get_by_text("team=vision").first.wait_for()
    page.goto("/models/to%20go/")
    page.get_by_text("Protected aliases: none").click()
    page.get_by_label("Only owners can move these").fill("production")
    page.locator("form", has=page.get_by_label("Only owners can move these")).get_by_role(
        "button", name="Save"
    ).click()
    page.get_by_text("Protected aliases: production").wait_for()
    page.get_by_role("button", name="Delete").first.click()
    page.locator("dialog").get_by_role("button", name="Delete the model").click()
    page.wait_for_url(re.compile(r"/models/$"))
    assert page.get_by_text("to go", exact=True).count() == 0
