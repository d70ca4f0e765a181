"""A small real HTTP server that answers as a test has written down, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """`cut`: so many bytes of the body are sent, then the connection ends; None = all."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


def problem(status: int, **more: Any) -> Reply:
    return Reply(status, json.dumps({"status": status, **more}).encode())


class ScriptedHub:
    """`replies`: one for each request in turn, the last one again and again; or a function of the request."""

    def __init__(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    @contextmanager
    def serving(self, context: ssl.SSLContext | None = None) -> Iterator[str]:
        """Yields the address. `context`: for TLS."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            port = server.server_address[1]
            yield f"https://localhost:{port}" if context else f"http://127.0.0.1:{port}"
        finally:
            server.shutdown()
            server.server_close()

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(request) if callable(reply) else reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                connection = self.client_address[1]
                reply = hub.reply(Request(self.command, self.path, headers, body, connection))
                # The other one adds the date of now.
                send = self.send_response_only if "Date" in reply.headers else self.send_response
                send(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: reply.cut])
                self.close_connection = self.close_connection or reply.cut is not None

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler
