"""A broker gateway of its own in front of the tests' Valkey, with certificates of an authority made for
it."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from tests.hub import PROJECT, eventually, free_port
from trainhub import certificates

PASSWORD = "of-the-node"


@dataclass(frozen=True)
class Gateway:
    port: int
    ca: Path
    process: subprocess.Popen[bytes]
    host: str = "127.0.0.1"

    def url(self, user: str = "node.alpha", password: str = PASSWORD) -> str:
        return f"rediss://{user}:{password}@{self.host}:{self.port}/0"

    def client(self, user: str = "node.alpha", password: str = PASSWORD) -> redis.Redis:
        return redis.Redis.from_url(
            self.url(user, password), ssl_ca_certs=str(self.ca), socket_timeout=10, retry=None
        )

    def line(self, source: str = "") -> socket.socket:
        return socket.create_connection((self.host, self.port), 10, source_address=(source, 0))

    def encrypted(self, source: str = "") -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.ca)
        return context.wrap_socket(self.line(source), server_hostname=self.host)


@contextmanager
def gateway(valkey: str, folder: Path, host: str = "127.0.0.1") -> Iterator[Gateway]:
    """Ready when the block begins; the user node.alpha may wait at its queue."""
    certificates.ensure(folder, [host])
    port, server = free_port(), urlsplit(valkey).path
    with redis.Redis.from_url(valkey) as hub:
        hub.execute_command(
            "ACL SETUSER", "node.alpha", "reset", "~node.alpha.wake", "+ping", "+brpop", f">{PASSWORD}", "on"
        )
    command = [sys.executable, "-m", "trainhub.gateway", host, str(port), server]
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, str(folder / "server.pem"), str(folder / "server-key.pem")],
            cwd=PROJECT,
            stdout=log,
            stderr=log,
        )
    try:
        running = Gateway(port, folder / "ca.pem", process, host)
        eventually(lambda: _listens(running), 60, (folder / "gateway.log").read_text())
        yield running
    finally:
        process.terminate()
        assert process.wait(20) == 0, (folder / "gateway.log").read_text()
        with redis.Redis.from_url(valkey) as hub:
            hub.execute_command("ACL DELUSER", "node.alpha")


def _listens(running: Gateway) -> bool:
    assert running.process.poll() is None
    try:
        running.line().close()
    except OSError:
        return False
    return True
