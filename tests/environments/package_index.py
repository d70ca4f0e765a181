"""A small package index over HTTP with wheels that the test makes."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.node.link import wheels


class PackageIndex:
    """Serves the files in `folder`. `is_silent`: it accepts requests for files and answers none of them.
    `login`: the user and password ("user:password") without which it answers 401, or the password as a Bearer
    token; `authorizations`: what came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_silent = False
        self.login = ""
        self.authorizations: set[str] = set()
        self.ended = threading.Event()
        self.requests: list[str] = []
        handler = type("Handler", (_Handler,), {"index": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/simple"

    def add(self, name: str, version: str = "1.0", *needs: str, python: str = "", size: int = 0) -> str:
        """Adds a wheel of one module, and returns its SHA-256. `size`: of its module at least, in bytes."""
        wheels.make(self.folder, name, version, needs=needs, python=python, size=size)
        return self.sha256(f"{name}-{version}-py3-none-any.whl")

    def add_source(self, name: str, version: str = "1.0") -> None:
        """Adds a source distribution, which is not read."""
        (self.folder / f"{name}-{version}.tar.gz").write_bytes(b"not even an archive")

    def sha256(self, file: str) -> str:
        return hashlib.sha256((self.folder / file).read_bytes()).hexdigest()

    @contextmanager
    def serving(self) -> Iterator[PackageIndex]:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends it for good."""
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def answer_post(self) -> bytes:
        return b""

    def is_open_to(self, authorization: str) -> bool:
        if authorization:
            self.authorizations.add(authorization)
        basic = base64.b64encode(self.login.encode()).decode()
        bearer = self.login.partition(":")[2]
        return not self.login or authorization in (f"Basic {basic}", f"Bearer {bearer}")

    def page(self, name: str) -> bytes:
        files = sorted(
            path.name
            for path in self.folder.iterdir()
            if path.name.split("-")[0].replace("_", "-") == name.replace("_", "-")
        )
        links = (f'<a href="/files/{file}#sha256={self.sha256(file)}">{file}</a>' for file in files)
        return "\n".join(links).encode()


class _Handler(BaseHTTPRequestHandler):
    index: PackageIndex

    def log_message(self, format: str, *args: object) -> None: ...

    def do_GET(self) -> None:
        self.index.requests.append(self.path)
        silent_until = time.monotonic() + 60
        was_silent = self.index.is_silent and self.command != "POST"
        while (
            was_silent
            and self.index.is_silent
            and time.monotonic() < silent_until
            and not self.index.ended.wait(0.1)
        ):
            pass
        if was_silent:
            return
        if not self.index.is_open_to(self.headers.get("Authorization", "")):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        kind, _, name = self.path.strip("/").partition("/")
        path = self.index.folder / name
        name = name.rstrip("/")
        body = (
            self.index.answer_post()
            if self.command == "POST"
            else self.index.page(name)
            if kind == "simple"
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if kind == "simple" else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # uv asks for the size before it decides how to read the metadata.
    do_HEAD = do_POST = do_GET  # noqa: N815 - http.server's names
