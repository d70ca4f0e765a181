"""A real HTTP server on this machine that behaves as badly as a test wants, and remembers what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

Answer = Callable[["Handler"], None]


@dataclass(frozen=True)
class Got:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.raw))


def status(code: int, **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def hang(handler: Handler) -> None:
    """Takes everything, answers nothing."""
    handler.server.over.wait(30)


def close(handler: Handler) -> None:
    handler.connection.close()


def trickle(handler: Handler) -> None:
    """A byte of a header now and then: no single wait is long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server.over.wait(0.3):
        handler.wfile.write(b"a")
        handler.wfile.flush()


def flood(handler: Handler) -> None:
    """200 OK, and a body without end."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b"x" * 65536)


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(
            Got(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        )
        try:
            self.server.answer(self)
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Answer = answer or status(200)
        self.got: list[Got] = []
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def subscribe_to_alerts(self, client: httpx.Client) -> None:
        """Makes it a channel of the whole workspace for every alert and its end. `client`: of an owner."""
        channel = {
            "name": "all",
            "target": self.url,
            "events": ["alert.critical", "alert.warning", "alert.cleared"],
            "scope": "workspace",
        }
        answer = client.post("/api/v1/notification-channels/", json=channel)
        assert answer.status_code == httpx.codes.CREATED, answer.text

    def alerts(self, event: str) -> list[dict[str, Any]]:
        """Returns the messages of `event` (alert.fired, alert.cleared) so far."""
        return [got.body for got in self.got if got.body["event"] == event]

    def stop(self) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()
