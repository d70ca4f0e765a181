"""The hub's raw routes behind a real web server in this process, and requests whose last bytes can be held
back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from tests.hub import eventually


class HeldRequest:
    """A PUT on a socket of its own: everything but the last byte is sent at once, `release` sends that."""

    def __init__(self, address: tuple[str, int], path: str, headers: dict[str, str], body: bytes) -> None:
        self._last = body[-1:]
        lines = [
            f"PUT {path} HTTP/1.1",
            f"Host: {address[0]}:{address[1]}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket = socket.create_connection(address, timeout=60)
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + body[:-1])

    def release(self) -> None:
        self._socket.sendall(self._last)

    def status(self) -> int:
        """Waits for the answer."""
        with self._socket, self._socket.makefile("rb") as answer:
            return int(answer.read().split(b" ", 2)[1])


@contextmanager
def served(app: ASGIApp) -> Iterator[tuple[str, int]]:
    """Serves `app` by uvicorn on a free port of the loopback; yields host and port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, 30, "the web server has started")
        host, port = listener.getsockname()
        yield str(host), int(port)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
