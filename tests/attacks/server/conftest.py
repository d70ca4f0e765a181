from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hub import PROJECT, eventually, free_port
from trainhub import certificates

Start = Callable[..., "SmallServer"]


class SmallServer:
    """See `small_server`: only its protocols are those of the hub."""

    def __init__(self, tls: Path | None = None, **facts: Any) -> None:
        self.port = free_port()
        self.authority = tls / "ca.pem" if tls else None
        if tls:
            certificates.ensure(tls, ["127.0.0.1"])
            facts["tls"] = [str(tls / "server.pem"), str(tls / "server-key.pem")]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        command = [
            sys.executable,
            "-m",
            "tests.attacks.server.small_server",
            str(self.port),
            json.dumps(facts),
        ]
        self.process = subprocess.Popen(
            command, cwd=PROJECT, env={**os.environ, "DJANGO_SETTINGS_MODULE": ""}
        )
        eventually(self._listens, 30, "the small server listens")

    def connect(self, *parts: bytes) -> socket.socket:
        """A plain TCP connection that has sent `parts`."""
        line = socket.create_connection(("127.0.0.1", self.port), 10)
        for part in parts:
            line.sendall(part)
        return line

    def get(self, path: str = "/", **options: Any) -> httpx.Response:
        trusted = ssl.create_default_context(cafile=self.authority) if self.authority else True
        return httpx.get(f"{self.url}{path}", verify=trusted, timeout=10, **options)

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def _listens(self) -> bool:
        assert self.process.poll() is None, "the small server has ended"
        try:
            self.connect().close()
        except OSError:
            return False
        return True


@pytest.fixture
def start_server() -> Iterator[Start]:
    """Start small servers that end with the test."""
    with ExitStack() as stack:

        def start(**facts: Any) -> SmallServer:
            server = SmallServer(**facts)
            stack.callback(server.stop)
            return server

        yield start


def is_closed(line: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection within that time. What it still sends is dropped."""
    line.settimeout(seconds)
    try:
        while line.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True
