"""S2: the broker is reached from other machines through the gateway alone, which nobody without a node's
password holds up."""

from __future__ import annotations

import json
import os
import random
import select
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celery
import pytest
import redis

from tests.attacks.broker.gateways import Gateway, gateway
from tests.hub import PROJECT, eventually
from trainhub import certificates
from trainhub.gateway import admission, relay
from trainhub.installation import broker_of

OF_TESTS = "of-tests-only"
LISTENER = """
import json, sys
from pathlib import Path
from trainhub_node.broker.celery_worker import CeleryWorker
from trainhub_node.broker.broker_link import from_config
link = from_config(json.loads(sys.argv[1]), Path(sys.argv[2]))
CeleryWorker(link, lambda run, attempt: print("woken", run, attempt, flush=True), lambda: None).run()
"""


@pytest.fixture(scope="module")
def way(valkey_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(valkey_server, tmp_path_factory.mktemp("gateway")) as running:
        yield running


def is_closed(line: socket.socket, seconds: float) -> bool:
    """Whether the other side ends the connection within that time, whatever it says before."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if not select.select([line], [], [], left)[0]:
            return False
        try:
            if not line.recv(4096):
                return True
        except OSError:
            return True
    return False


class TestStrangers:
    def test_without_tls_get_no_answer(self, way: Gateway) -> None:
        with way.line() as line:
            line.sendall(
                b"*3\r\n$4\r\nAUTH\r\n$10\r\nnode.alpha\r\n$11\r\nof-the-node\r\n*1\r\n$4\r\nPING\r\n"
            )
            heard = b""
            while piece := line.recv(4096):
                heard += piece
        assert b"+OK" not in heard
        assert b"PONG" not in heard

    @pytest.mark.parametrize(
        ("user", "password"),
        [
            ("default", OF_TESTS),
            ("node.alpha", "wrong"),
            ("node.beta", "of-the-node"),
            ("", OF_TESTS),
            ("hub", OF_TESTS),
        ],
    )
    def test_with_another_name_or_password_are_refused_also_with_the_hubs_own(
        self, way: Gateway, user: str, password: str
    ) -> None:
        with way.client(user, password) as client, pytest.raises(redis.ConnectionError):
            client.ping()

    @pytest.mark.parametrize(
        "words",
        [
            b"PING\r\n",
            b"AUTH of-tests-only\r\n",
            b"*2\r\n$4\r\nAUTH\r\n$13\r\nof-tests-only\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\0" * 100,
            b"*99999999\r\n",
            b"*-1\r\n",
            b"*1\r\n$99999999\r\n",
            b"*3\r\n$4\r\nAUTH\r\n$5\r\nnode.alpha\r\n",
            b"*1\r\n$x\r\n",
            b"*0\r\n",
            b"\r\n",
            b"*" * 20,
        ],
    )
    def test_who_begin_with_anything_but_a_sign_in_are_sent_away(self, way: Gateway, words: bytes) -> None:
        with way.encrypted() as line:
            line.sendall(words)
            assert is_closed(line, 5)

    def test_who_send_noise_end_nothing(self, way: Gateway) -> None:
        chance = random.Random(12)  # noqa: S311 - noise that is the same each time
        for number in range(100):
            with way.line() as line:
                line.sendall(chance.randbytes(chance.randrange(1, 600)))
            if number % 4 == 0:
                with way.encrypted() as line:
                    line.sendall(b"*3\r\n$4\r\nAUTH\r\n" + chance.randbytes(chance.randrange(1, 300)))
        with way.client() as client:
            assert client.ping()
        assert way.process.poll() is None

    def test_who_say_nothing_are_few_for_each_address_and_do_not_stay(self, way: Gateway) -> None:
        most = admission.MAX_STRANGERS_OF_ADDRESS
        lines = [way.line("127.0.0.9") for _ in range(most + 50)]
        try:
            eventually(lambda: sum(is_closed(line, 0.001) for line in lines) >= 50, 10)
            with way.client() as client:  # from another address
                assert client.ping()
            began = time.monotonic()
            assert all(is_closed(line, relay.SIGN_IN_S + 5) for line in lines)
            assert time.monotonic() - began < relay.SIGN_IN_S + 5
        finally:
            for line in lines:
                line.close()


class TestNodes:
    def test_with_too_many_connections_lose_their_oldest_and_nobody_elses(self, way: Gateway) -> None:
        clients = [way.client() for _ in range(admission.MAX_GUESTS_OF_USER + 2)]
        lines: list[Any] = [client.connection_pool.get_connection() for client in clients]
        for line in lines:
            line.connect()
        assert [is_closed(line._sock, 0.2) for line in lines] == [
            True,
            True,
            *[False] * admission.MAX_GUESTS_OF_USER,
        ]
        for line in lines:
            line.disconnect()

    def test_trust_the_authority_that_they_pinned_and_no_other(self, way: Gateway, tmp_path: Path) -> None:
        """Also where the machine itself trusts the authority of who stands between."""
        certificates.ensure(tmp_path, ["127.0.0.1"])
        assert not self.reaches(way, pinned=tmp_path / "ca.pem", machine=way.ca)
        assert self.reaches(way, pinned=way.ca, machine=tmp_path / "ca.pem")

    def reaches(self, way: Gateway, pinned: Path, machine: Path) -> bool:
        code = (
            "import json, sys; from pathlib import Path; from trainhub_node.link import wakeups\n"
            "print(wakeups.connection_error(json.loads(sys.argv[1]), Path(sys.argv[2])))"
        )
        told = json.dumps(
            {"broker_url": way.url(), "queue": "node.alpha.wake", "broker_ca": way.ca.read_text()}
        )
        done = subprocess.run(
            [sys.executable, "-c", code, told, str(pinned)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "SSL_CERT_FILE": str(machine)},
        )
        assert not done.stdout.strip() or "CERTIFICATE_VERIFY_FAILED" in done.stdout, done.stdout
        return not done.stdout.strip()

    def test_are_woken_through_it(self, way: Gateway, valkey: str, tmp_path: Path) -> None:
        told = json.dumps(
            {"broker_url": way.url(), "queue": "node.alpha.wake", "broker_ca": way.ca.read_text()}
        )
        heard = tmp_path / "heard"
        with heard.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", LISTENER, told, str(way.ca)],
                cwd=PROJECT,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            with celery.Celery(broker=broker_of(valkey), set_as_current=False) as app:
                for number in range(10):
                    app.send_task(
                        "node.wake",
                        kwargs={"run": f"{number:032x}", "attempt": 1},
                        queue="node.alpha.wake",
                        ignore_result=True,
                    )
            eventually(lambda: heard.read_text().count("woken ") == 10, 60, "ten wake-ups arrive")
        finally:
            process.kill()
            process.wait(10)

    def test_may_stand_300_behind_one_address(self, way: Gateway, valkey: str) -> None:
        names = [f"node.many{number}" for number in range(300)]
        with redis.Redis.from_url(valkey) as hub:
            for name in names:
                hub.execute_command("ACL SETUSER", name, "reset", "+ping", ">p", "on")
        clients = [way.client(name, "p") for name in names]
        try:
            assert all(client.ping() for client in clients)
            assert all(client.ping() for client in clients)
        finally:
            for client in clients:
                client.close()
            with redis.Redis.from_url(valkey) as hub:
                hub.execute_command("ACL DELUSER", *names)


class TestProtocol:
    def test_is_tls_1_2_or_newer(self, way: Gateway) -> None:
        context = ssl.create_default_context(cafile=way.ca)
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with way.line() as line, pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(line, server_hostname="127.0.0.1")
