"""Uploads of models whose connection breaks, or whose files change."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.scripted_hub import Reply, Request, ScriptedHub, problem
from trainhub_sdk import Client
from trainhub_sdk.errors import HubRefused, HubUnreachable, UploadError
from trainhub_sdk.models import ModelVersion
from trainhub_sdk.uploads import file_pieces, model_upload

# More than what is read ahead.
PIECE = 20_000
LARGE, SMALL = bytes(range(250)) * 200, b"labels"
RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


class ModelsHub(ScriptedHub):
    """Takes uploads as a hub does. `parts`: bytes by SHA-256; `sent`: the length of each piece that came;
    `on_put` is called before one is taken, and may answer instead; `bodies`: what was registered."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.parts: dict[str, bytes] = {}
        self.sent: list[int] = []
        self.on_put: Callable[[], Reply | None] = lambda: None
        self.bodies: list[Any] = []

    def _reply(self, request: Request) -> Reply:
        if request.path == "/api/v1/models/birds/versions/":
            self.bodies.append(json.loads(request.body))
            return Reply(201, json.dumps({"model": "birds", "version": 3}).encode())
        sha256 = request.path.removeprefix("/api/v1/uploads/")
        if request.method == "PUT":
            return self.on_put() or self._put(sha256, request)
        part = self.parts.get(sha256, b"")
        is_whole = sha256 in self.parts and hashlib.sha256(part).hexdigest() == sha256
        headers = {"Upload-Offset": str(len(part)), "Upload-Complete": "true" if is_whole else "false"}
        return Reply(200, b"", headers)

    def _put(self, sha256: str, request: Request) -> Reply:
        before, match = self.parts.get(sha256, b""), RANGE.fullmatch(request.headers["content-range"])
        assert match is not None
        if int(match[1] or 0) != len(before):
            return problem(409, title="Not at this offset")
        self.sent.append(len(request.body))
        self.parts[sha256] = before + request.body
        if (
            len(self.parts[sha256]) == int(match[2])
            and hashlib.sha256(self.parts[sha256]).hexdigest() != sha256
        ):
            del self.parts[sha256]
            return problem(422, title="Wrong content")
        return Reply(200, b"")


@pytest.fixture(autouse=True)
def _small_and_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_pieces, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(model_upload, "PAUSE_S", 0)
    monkeypatch.setattr("trainhub_sdk.api_connection.RETRY_S", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    (folder / "extra").mkdir(parents=True)
    (folder / "weights.bin").write_bytes(LARGE)
    (folder / "extra" / "labels.txt").write_bytes(SMALL)
    (folder / "empty").touch()
    return folder


def upload(hub: ModelsHub, folder: Path, **others: Any) -> ModelVersion:
    with hub.serving() as url:
        client = Client(url, "token")
        client.api._retry_s = 0
        return client.upload_model("birds", folder, **others)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_files_are_sent_in_pieces_and_registered_by_their_hashes(folder: Path) -> None:
    hub = ModelsHub()
    version = upload(hub, folder, description="Ten birds.", tags={"species": "10"})
    assert (version.model, version.version) == ("birds", 3)
    (body,) = hub.bodies
    assert {row["path"]: row["sha256"] for row in body["files"]} == {
        "weights.bin": sha256(LARGE),
        "extra/labels.txt": sha256(SMALL),
        "empty": sha256(b""),
    }
    assert (body["description"], body["tags"]) == ("Ten birds.", {"species": "10"})
    assert sorted(hub.sent) == [0, len(SMALL), PIECE // 2, PIECE, PIECE]
    upload(hub, folder)
    assert len(hub.sent) == 5, "what the hub has is not sent again"


def test_after_a_break_it_goes_on_where_it_was(folder: Path) -> None:
    hub, pieces = ModelsHub(), iter(range(10))
    hub.on_put = lambda: Reply(cut=0) if next(pieces) in (2, 3) else None
    upload(hub, folder)
    assert sum(hub.sent) == len(LARGE) + len(SMALL)
    assert len(hub.bodies) == 1


def test_a_later_upload_goes_on_where_an_earlier_one_was_ended(folder: Path) -> None:
    hub = ModelsHub()
    hub.parts[sha256(LARGE)] = LARGE[: 2 * PIECE]
    upload(hub, folder)
    assert sum(hub.sent) == PIECE // 2 + len(SMALL)


def test_a_connection_that_always_breaks_is_given_up(folder: Path) -> None:
    hub = ModelsHub()
    hub.on_put = lambda: Reply(cut=0)
    with pytest.raises(HubUnreachable, match=r"the connection broke 5 times at"):
        upload(hub, folder)
    assert hub.bodies == []


def test_a_file_that_changes_is_not_registered(folder: Path) -> None:
    hub = ModelsHub()

    def change() -> None:
        if PIECE in hub.sent:
            (folder / "weights.bin").write_bytes(LARGE[::-1])

    hub.on_put = change
    with pytest.raises(UploadError, match=r"weights\.bin was changed while it was sent: upload it again"):
        upload(hub, folder)
    assert hub.bodies == []


def test_a_refusal_is_the_hubs(folder: Path) -> None:
    hub = ModelsHub()
    hub.on_put = lambda: problem(507, title="Disk full", detail="The hub's disk is full.")
    with pytest.raises(HubRefused, match="disk is full"):
        upload(hub, folder)
