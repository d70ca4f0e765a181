"""Files of the hub: read with the ticket of the order, and only as what their list says."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.node.data.processes import Fetch
from trainhub_launch.data.manifests import ListedFile, ManifestWriter, content_etag, order_key
from trainhub_launch.data.stores import HUB, TICKET, URL, Store


@cache
def files() -> dict[str, bytes]:
    return {
        "a/1.bin": os.urandom(1000),
        "a/2.bin": b"the same",
        "b/2.bin": b"the same",
        "large": os.urandom(40_000_000),
    }


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FileServer:
    """Serves contents by their SHA-256, as the hub does. `requests` counts them."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = dict(contents)
        self.requests = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.requests += 1
                data = server.contents.get(self.path.rpartition("/")[2])
                if data is None or self.headers["Authorization"] != "Bearer the-ticket":
                    self.send_response(404)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                first, last = 0, len(data) - 1
                if span := self.headers["Range"]:
                    first, last = map(int, span.removeprefix("bytes=").split("-"))
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                else:
                    self.send_response(200)
                self.send_header("ETag", self.headers["If-Match"] or "")
                self.send_header("Content-Length", str(last - first + 1))
                self.end_headers()
                self.wfile.write(data[first : last + 1])

            def log_message(self, *_: object) -> None:
                """Tests print nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    @property
    def store(self) -> Store:
        url = f"http://127.0.0.1:{self._http.server_port}/api/v1/node/data/list"
        return Store(HUB, settings={URL: url, TICKET: "the-ticket"})

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[FileServer]:
    server = FileServer({sha256(data): data for data in files().values()})
    yield server
    server.close()


@pytest.fixture
def listed(tmp_path: Path) -> str:
    path = tmp_path / "list"
    with path.open("wb") as stream:
        writer = ManifestWriter(stream)
        for name in sorted(files(), key=order_key):
            data = files()[name]
            writer.write(ListedFile(name, len(data), content_etag(sha256(data)), 1_700_000_000.0))
        writer.flush()
    return str(path)


def test_are_read_once_for_each_content(tmp_path: Path, server: FileServer, listed: str) -> None:
    fetch = Fetch(tmp_path / "cache", server.store, manifest=listed)
    assert fetch.done()["downloaded_files"] == 3
    assert fetch.files() == files()
    before = server.requests
    again = Fetch(tmp_path / "cache", server.store, manifest=listed, attempt=f"{'b2' * 16}-1")
    assert again.done()["downloaded_files"] == 0
    assert again.files() == files()
    assert server.requests == before


@pytest.mark.parametrize("name", ["a/1.bin", "large"])
def test_with_another_content_end_the_run(tmp_path: Path, server: FileServer, listed: str, name: str) -> None:
    right = files()[name]
    server.contents[sha256(right)] = bytes(len(right))
    error = Fetch(tmp_path / "cache", server.store, manifest=listed).error()
    assert f"{name} arrived from the hub with another content than its list says" in error
    server.contents[sha256(right)] = right
    fetch = Fetch(tmp_path / "cache", server.store, manifest=listed)
    fetch.done()
    assert fetch.files() == files()


def test_that_are_gone_are_named_by_their_path(tmp_path: Path, server: FileServer, listed: str) -> None:
    del server.contents[sha256(files()["a/1.bin"])]
    error = Fetch(tmp_path / "cache", server.store, manifest=listed).error()
    assert "The hub has no a/1.bin any more: upload the files of the dataset again" in error
