"""Uploads of a folder as a dataset whose connection breaks, whose files change, or that the hub refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.sdk.scripted_hub import Reply, Request, ScriptedHub, problem
from trainhub_sdk import Client
from trainhub_sdk.errors import HubRefused, HubUnreachable, UploadError
from trainhub_sdk.uploads import dataset_upload, file_pieces

PIECE = 1000
RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class UploadHub(ScriptedHub):
    """Takes uploads as a hub does. `stored`: bytes by path; `on_put` is called with each path and may break
    off; `sent`: how many bytes came."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.stored: dict[str, bytes] = {}
        self.on_put: Callable[[str, bytes], Reply | None] = lambda path, piece: None
        self.datastores: list[str] = []
        self.refused: list[dict[str, str]] = []
        self.has_dataset = False
        self.sent = 0

    def _reply(self, request: Request) -> Reply:
        path = request.path.partition("?")[0].removeprefix("/api/v1/")
        if request.method == "PUT":
            return self._put(unquote(path.partition("/upload/files/")[2]), request)
        data = json.loads(request.body) if request.body else {}
        if path == "datastores/" and request.method == "POST":
            self.datastores.append(data["name"])
        if path == "datasets/" and request.method == "POST":
            self.has_dataset = True
        if path == "datasets/birds/" and not self.has_dataset:
            return problem(404)
        answers: dict[str, Any] = {
            "datastores/": data if data else [{"name": name, "kind": "hub"} for name in self.datastores],
            "datasets/birds/uploads/": {"version": 2},
            "datasets/birds/versions/2/upload/finish/": {"dataset": "birds", "version": 2, **data},
        }
        if path.endswith("upload/files/"):
            answers[path] = {"missing": self._missing(data["files"]), "refused": self.refused}
        return Reply(body=json.dumps(answers.get(path, {})).encode())

    def _missing(self, named: list[dict[str, Any]]) -> list[dict[str, Any]]:
        here = {file["path"]: len(self.stored.get(file["path"], b"")) for file in named}
        return [
            {"path": file["path"], "offset": here[file["path"]]}
            for file in named
            if here[file["path"]] < file["size"] or file["path"] not in self.stored
        ]

    def _put(self, path: str, request: Request) -> Reply:
        if reply := self.on_put(path, request.body):
            return reply
        part = RANGE.fullmatch(request.headers.get("content-range", ""))
        before = self.stored.get(path, b"") if part else b""
        if part and int(part[1]) != len(before):
            return problem(409, title="Not at this offset")
        self.stored[path] = before + request.body
        self.sent += len(request.body)
        return Reply(204, b"")


@pytest.fixture(autouse=True)
def _small_and_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pieces, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(dataset_upload, "PAUSE_S", 0)
    monkeypatch.setattr("trainhub_sdk.api_connection.RETRY_S", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "2024").mkdir(parents=True)
    (folder / "2024" / "large.bin").write_bytes(bytes(range(250)) * 100)
    (folder / "an owl.jpg").write_bytes(b"owl")
    (folder / "empty").touch()
    return folder


def upload(hub: UploadHub, folder: Path, **others: str) -> Any:
    with hub.serving() as url:
        client = Client(url, "token")
        client.api._retry_s = 0
        return client.upload_dataset("birds", folder, **others)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_becomes_a_version_of_a_new_dataset(folder: Path) -> None:
    expected, hub = contents(folder), UploadHub()
    (folder / "2024" / ".DS_Store").write_bytes(b"of the system")
    version = upload(hub, folder)
    assert (version.dataset, version.version, version.files) == ("birds", 2, 3)
    assert hub.stored == expected
    assert hub.datastores == ["uploads"]
    made = next(json.loads(request.body) for request in hub.requests if request.path == "/api/v1/datasets/")
    assert made == {"name": "birds", "datastore": "uploads", "path": ""}


def test_one_file_has_its_own_name(folder: Path) -> None:
    hub = UploadHub()
    hub.has_dataset = True
    upload(hub, folder / "an owl.jpg")
    assert hub.stored == {"an owl.jpg": b"owl"}
    assert hub.datastores == []


@pytest.mark.parametrize("is_stored", [False, True], ids=["lost", "answer-lost"])
def test_a_broken_connection_costs_no_byte_twice(folder: Path, is_stored: bool) -> None:
    hub, breaks = UploadHub(), [2]

    def cut(path: str, piece: bytes) -> Reply | None:
        if path != "2024/large.bin" or len(hub.stored.get(path, b"")) != PIECE or not breaks:
            return None
        breaks.pop()
        if is_stored:
            hub.stored[path] += piece
            hub.sent += len(piece)
        # An answer without an end.
        return Reply(200, b"xx", cut=1)

    hub.on_put = cut
    upload(hub, folder)
    assert hub.stored == contents(folder)
    assert hub.sent == sum(map(len, hub.stored.values()))


def test_a_connection_that_breaks_again_and_again_ends_the_upload(folder: Path) -> None:
    hub = UploadHub()
    hub.on_put = lambda path, piece: Reply(200, b"xx", cut=1)
    with pytest.raises(HubUnreachable, match=r"the connection broke 5 times at 2024/large\.bin"):
        upload(hub, folder)
    hub.on_put = lambda path, piece: None
    upload(hub, folder)
    assert hub.stored == contents(folder)


def test_a_file_that_becomes_shorter_is_named(folder: Path) -> None:
    hub = UploadHub()

    def shorten(path: str, piece: bytes) -> None:
        (folder / "2024" / "large.bin").write_bytes(b"short")

    hub.on_put = shorten
    with pytest.raises(UploadError, match=r"large\.bin was changed while it was sent: upload it again\."):
        upload(hub, folder)


def test_what_the_hub_refuses_is_named(folder: Path) -> None:
    hub = UploadHub()
    hub.refused = [{"path": "an owl.jpg", "reason": "it has more than 100 GiB"}]
    with pytest.raises(UploadError, match=r"The hub does not take an owl\.jpg: it has more than 100 GiB\."):
        upload(hub, folder)
    assert hub.stored == {}


def test_an_error_of_the_hub_ends_the_upload(folder: Path) -> None:
    hub = UploadHub()
    hub.on_put = lambda path, piece: problem(507, title="Disk full", detail="The disk of the hub is full.")
    with pytest.raises(HubRefused, match="The disk of the hub is full"):
        upload(hub, folder)


def test_an_empty_folder_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    hub = UploadHub()
    with pytest.raises(UploadError, match="is an empty folder: give a file, or a folder with files"):
        upload(hub, tmp_path)
    with pytest.raises(UploadError, match="does not exist"):
        upload(hub, tmp_path / "nothing")
    assert hub.requests == []
