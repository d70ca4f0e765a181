"""S2: on the network between two hosts neither a node's broker password nor a wake-up can be read."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import celery
import pytest

from tests.attacks.broker.gateways import PASSWORD, gateway
from tests.attacks.broker.test_gateway import LISTENER
from tests.hosts.wiring import Bridge
from tests.hub import PROJECT, eventually
from trainhub.installation import broker_of

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
ALL_PROTOCOLS = 0x0003
LARGEST_PACKET = 65535
FEWEST_PACKETS = 10
"""From and to the gateway's port, of a connection that carried a wake-up."""


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

    def carried(self, data: bytes) -> bool:
        return any(data in packet for packet in self.packets)


@contextmanager
def sniffing(interface: str) -> Iterator[Sniffer]:
    sniffer = Sniffer(interface)
    sniffer.start()
    try:
        yield sniffer
    finally:
        sniffer.close()


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    built = Bridge(1)
    built.build()
    try:
        yield built
    finally:
        built.remove()


def test_neither_password_nor_run_id_can_be_read(bridge: Bridge, valkey: str, tmp_path: Path) -> None:
    run, canary, heard = "c0ffee" * 5 + "00", b"canary in plain text", tmp_path / "heard"
    with sniffing(bridge.link(1)) as sniffer, gateway(valkey, tmp_path, bridge.hub_address) as way:
        told = json.dumps(
            {"broker_url": way.url(), "queue": "node.alpha.wake", "broker_ca": way.ca.read_text()}
        )
        space = ["ip", "netns", "exec", bridge.namespace(bridge.host_name(1))]
        in_plain = f"import socket; socket.create_connection(('{way.host}', {way.port})).sendall({canary!r})"
        subprocess.run([*space, sys.executable, "-c", in_plain], check=True)
        with heard.open("w") as out:
            command = [*space, sys.executable, "-c", LISTENER, told, str(way.ca)]
            process = subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=subprocess.STDOUT)
        try:
            with celery.Celery(broker=broker_of(valkey), set_as_current=False) as app:
                app.send_task(
                    "node.wake",
                    kwargs={"run": run, "attempt": 1},
                    queue="node.alpha.wake",
                    ignore_result=True,
                )
            eventually(lambda: f"woken {run}" in heard.read_text(), 120, "the wake-up arrives")
            eventually(lambda: sniffer.carried(canary), 10, "the sniffer sees what is sent in plain text")
        finally:
            process.kill()
            process.wait(10)
    assert sum(way.port.to_bytes(2, "big") in packet[34:38] for packet in sniffer.packets) > FEWEST_PACKETS
    for secret in (PASSWORD, "node.alpha", run, "node.wake"):
        assert not sniffer.carried(secret.encode()), f"{secret} can be read on the network"
