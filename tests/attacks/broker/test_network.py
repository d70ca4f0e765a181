"""S2: on the network between two hosts neither a node's broker password nor a wake-up can be read."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.hosts.bench import Hosts
from tests.hub import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
ALL_PROTOCOLS = 0x0003
LARGEST_PACKET = 65535
HEADERS_AND_MORE = 20
"""Packets to the broker's port that a node which listens there sends at the least."""


class Sniffer(threading.Thread):
    """Keeps what passes an interface of this machine."""

    def __init__(self, interface: str) -> None:
        super().__init__(daemon=True)
        self.packets: list[bytes] = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        self._socket.bind((interface, 0))
        self._socket.settimeout(0.2)
        self._closing = threading.Event()

    def run(self) -> None:
        while not self._closing.is_set():
            try:
                self.packets.append(self._socket.recv(LARGEST_PACKET))
            except TimeoutError:
                continue
            except OSError:
                return

    def close(self) -> None:
        self._closing.set()
        self.join(5)
        self._socket.close()

    def carried(self, text: str) -> bool:
        return any(text.encode() in packet for packet in self.packets)

    def count_of(self, port: int) -> int:
        """Packets whose bytes hold the port's number where TCP over IPv4 has it."""
        return sum(port.to_bytes(2, "big") in packet[34:38] for packet in self.packets)


@contextmanager
def sniffing(interface: str) -> Iterator[Sniffer]:
    sniffer = Sniffer(interface)
    sniffer.start()
    try:
        yield sniffer
    finally:
        sniffer.close()


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    built = Hosts(tmp_path, str(getattr(sys, "_base_executable", sys.executable)), machines=1)
    built.bridge.build()
    try:
        yield built
    finally:
        built.stop()


def test_neither_password_nor_run_id_can_be_read(hosts: Hosts) -> None:
    (host,) = hosts.hosts
    with sniffing(host.link) as sniffer:
        hosts.start_on_bridge()
        run = hosts.script("print('here')")
        hosts.runs.until(run, "Completed", seconds=120)
        eventually(lambda: "Task node.wake" in host.agent_log.read_text(), 60, host.agent_log.read_text())
        eventually(lambda: sniffer.count_of(broker_port(hosts)) > HEADERS_AND_MORE, 60)
    token = json.loads((host.node / "node.json").read_text())["token"]
    headers = {"X-TrainHub-Capabilities": "wake-ups:read-only"}
    with hosts.hub.client(token) as machine:
        url = urlsplit(machine.get("/api/v1/node/config/", headers=headers).raise_for_status().json()["broker_url"])
    assert url.port == broker_port(hosts)
    assert len(str(url.password)) > 30
    for secret in (str(url.password), str(url.username), token, run, f"{run[:8]}-{run[8:12]}", "node.wake"):
        assert not sniffer.carried(secret), f"{secret[:10]}… can be read on the network"


def broker_port(hosts: Hosts) -> int:
    return int(hosts.hub.settings["BROKER_BIND"].rpartition(":")[2])
