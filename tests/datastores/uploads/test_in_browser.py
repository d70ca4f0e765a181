"""A folder of 500 files is uploaded from a browser, broken off and continued, and a run reads it."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hub import Hub
from tests.runs import log, submit, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.browser]
FILES = 500
READS = """
import hashlib, os, pathlib
folder = pathlib.Path(os.environ["TRAINHUB_INPUT_BIRDS"])
paths = sorted(path for path in folder.rglob("*") if path.is_file())
print(len(paths), hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest())
"""


def written(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def digest(folder: Path) -> str:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".DS_Store")
    return f"{len(paths)} {hashlib.sha256(b''.join(path.read_bytes() for path in paths)).hexdigest()}"


def files_of_a_run(hub: Hub) -> str:
    """What a run that reads the first version says about it."""
    run = submit(hub, READS, inputs={"birds": {"dataset": "songbirds", "version": 1}})
    wait_for(hub, run, "Completed")
    return log(hub, run).decode().strip()


class Sent:
    """Counts the files that the browser has sent, with the hub's answer."""

    def __init__(self, page: Any) -> None:
        self.count = 0
        self._page = page
        page.on("requestfinished", self._handle)

    def wait_for(self, count: int) -> None:
        """Returns when `count` files have been sent in all, which a slow machine may take minutes for."""
        end = time.monotonic() + 300
        while self.count < count:
            assert time.monotonic() < end, f"{self.count} files are sent after five minutes"
            # Requests are counted meanwhile.
            self._page.wait_for_timeout(50)

    def _handle(self, request: Any) -> None:
        self.count += bool(re.search(r"/upload/files/.", request.url))


def test_a_folder_is_uploaded_broken_off_and_continued(page: Any, hub: Hub, tmp_path: Path) -> None:
    folder = written(
        tmp_path / "photos",
        {f"{number % 20:02d}/{number:04d}.jpg": os.urandom(5_000) for number in range(FILES)},
    )
    (folder / ".DS_Store").write_bytes(b"of the system")
    sent = Sent(page)
    page.goto("/data/")
    page.get_by_role("link", name="New dataset").click()
    page.get_by_role("link", name="Upload files").click()
    page.get_by_label("Name").fill("songbirds")
    page.get_by_role("button", name="Choose files").click()
    page.get_by_label("Choose a folder").set_input_files(folder, timeout=120_000)
    sent.wait_for(150)
    page.context.set_offline(True)
    status = page.get_by_role("status")
    status.get_by_text("Interrupted: The hub cannot be reached.").wait_for()
    assert page.get_by_role("button", name="Continue").is_visible()

    # Somebody closes the page, and comes back.
    page.context.set_offline(False)
    page.goto("/data/")
    page.get_by_role("link", name="songbirds", exact=True).click()
    page.get_by_role("link", name="Upload files").click()
    page.get_by_text("of this upload are here already").wait_for()
    before = sent.count
    page.get_by_label("Choose a folder").set_input_files(folder, timeout=120_000)
    sent.wait_for(before + 50)
    page.get_by_role("button", name="Pause").click()
    status.get_by_text("Paused.").wait_for()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile(r"/data/sets/songbirds/1/$"), timeout=300_000)
    # Those on their way at a break may have arrived without an answer, or are sent again.
    assert FILES - 12 <= sent.count <= FILES + 12
    page.get_by_text(f"{FILES} with").wait_for()

    assert files_of_a_run(hub) == digest(folder)

    # The next version has what is in the folder then; what was kept is not sent again.
    written(folder, {"00/new.jpg": b"new", "01/0001.jpg": b"changed"})
    (folder / "02" / "0002.jpg").unlink()
    page.goto("/data/sets/songbirds/upload/")
    before = sent.count
    page.get_by_label("Choose a folder").set_input_files(folder, timeout=120_000)
    page.wait_for_url(re.compile(r"/data/sets/songbirds/2/$"), timeout=120_000)
    assert sent.count == before + 2
    for words, name in (("added", "new.jpg"), ("removed", "0002.jpg"), ("changed", "0001.jpg")):
        page.get_by_text(f"1 file {words}").click()
        assert page.locator("details[open] li").get_by_text(name).is_visible()
