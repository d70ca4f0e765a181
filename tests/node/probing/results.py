"""The part of a hub that takes the results of probes."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TICKET = "thu_1"


class Results:
    """What nodes have brought: `lists`, as the lines of their files, `progress` and `results`."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        taken = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self._body()
                taken.lists.append([json.loads(line) for line in gzip.decompress(body).splitlines()])
                answer = {"sha256": hashlib.sha256(body).hexdigest()}
                self._answer(201, json.dumps(answer).encode())

            def do_POST(self) -> None:
                facts = json.loads(self._body())
                (taken.progress if self.path.endswith("/progress/") else taken.results).append(facts)
                self._answer(204, b"")

            def _body(self) -> bytes:
                assert self.headers["Authorization"] == f"Bearer {TICKET}"
                return self.rfile.read(int(self.headers["Content-Length"]))

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/v1/node/data-orders/1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
