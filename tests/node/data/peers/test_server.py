"""The process that gives data to other nodes, and strangers who want more than they may have."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.peers.certificates import PeerCertificate, make_certificate
from tests.hub import eventually
from trainhub_launch.data.peer_tickets import TICKET_BYTES, PeerTicket, open_ticket, seal
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.blocks import divide
from trainhub_node.data.peers.client import PeerConnection, PeerFailed, PeerNode
from trainhub_node.data.peers.server import GREETING_S, MAX_PER_ADDRESS
from trainhub_node.data.peers.swarm_table import write_table
from trainhub_node.data.peers.wire import ABSENT, ANSWER, OK, REFUSED, REQUEST
from trainhub_node.data.remote_file import RemoteFile

KEY = b"k" * 32
SWARM, OTHER = "11" * 32, "22" * 32
FILES = {"a.bin": os.urandom(5000), "b.bin": os.urandom(7000)}


class Serving:
    """The process, with a cache in which SWARM is whole, and OTHER names a file that is not there."""

    def __init__(self, folder: Path) -> None:
        self.cache = DataCache(str(folder), "")
        self.cache.make()
        files = [RemoteFile(name, name, len(content), "", 1.0, "") for name, content in FILES.items()]
        for file in files:
            Path(self.cache.name(file.identity)).write_bytes(FILES[file.key])
        self.blocks = list(divide(file.size for file in files))
        write_table(self.cache, SWARM, files, self.blocks)
        absent = [RemoteFile("absent", "absent", 10, "", 1.0, "")]
        write_table(self.cache, OTHER, absent, list(divide([10])))
        self.certificate: PeerCertificate = make_certificate("alpha")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            self.process = subprocess.Popen(
                [*AGENT_WRAPPER, "peers", str(folder)],
                stdin=subprocess.PIPE,
                env={},
                pass_fds=[listener.fileno()],
            )
            terms = {
                "socket": listener.fileno(),
                "certificate": self.certificate.certificate,
                "key": self.certificate.key,
                "ticket_key": KEY.hex(),
            }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(terms).encode())
        self.process.stdin.close()

    def peer(self, ticket: bytes, fingerprint: str = "") -> PeerNode:
        return PeerNode(
            1, "alpha", "127.0.0.1", self.port, fingerprint or self.certificate.fingerprint, ticket
        )

    def raw(self) -> ssl.SSLSocket:
        """A connection that says whatever a test wants."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 30))

    def answer(self, ticket: bytes, number: int) -> int:
        """The status of the answer to a request."""
        with self.raw() as connection:
            connection.sendall(ticket + REQUEST.pack(number))
            status, _ = ANSWER.unpack(connection.recv(ANSWER.size))
            return int(status)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    made = Serving(tmp_path_factory.mktemp("cache"))
    yield made
    made.close()


def ticket(swarm: str = SWARM, key: bytes = KEY, seconds: float = 60) -> bytes:
    return seal(PeerTicket(swarm, "ab" * 16, 1, 7, int(time.time() + seconds)), key)


def test_a_ticket_opens_the_blocks_of_its_files(serving: Serving) -> None:
    connection = PeerConnection(serving.peer(ticket()))
    assert bytes(connection.take(0, serving.blocks[0]) or b"") == b"".join(FILES.values())
    assert connection.take(1, serving.blocks[0]) is None, "there is one block"
    assert bytes(connection.take(0, serving.blocks[0]) or b"") == b"".join(FILES.values()), (
        "and the connection goes on"
    )
    connection.close()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: os.urandom(TICKET_BYTES),
        lambda: ticket(key=b"x" * 32),
        lambda: ticket(seconds=-1),
        # The files of another swarm, with the code of this one.
        lambda: ticket(OTHER)[:32] + ticket()[32:],
    ],
)
def test_a_wrong_ticket_is_refused(serving: Serving, wrong: Callable[[], bytes]) -> None:
    assert serving.answer(wrong(), 0) == REFUSED


def test_a_ticket_that_ends_is_refused_on_an_open_connection(serving: Serving) -> None:
    with serving.raw() as connection:
        connection.sendall(ticket(seconds=2) + REQUEST.pack(0))
        assert connection.recv(ANSWER.size)[0] == OK
        rest = sum(map(len, FILES.values()))
        while rest:
            rest -= len(connection.recv(rest))
        time.sleep(2.5)
        connection.sendall(REQUEST.pack(0))
        assert connection.recv(ANSWER.size)[0] == REFUSED


@pytest.mark.parametrize(("swarm", "number"), [(OTHER, 0), ("33" * 32, 0), (SWARM, 1), (SWARM, 2**32 - 1)])
def test_what_is_not_there_is_absent(serving: Serving, swarm: str, number: int) -> None:
    assert serving.answer(ticket(swarm), number) == ABSENT


def test_a_ticket_says_no_path() -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        ticket("../../../../etc/passwd".ljust(64, "x"))
    opened = open_ticket(ticket(), KEY, time.time())
    assert opened is not None
    assert opened.swarm == SWARM


def test_another_certificate_is_not_believed(serving: Serving) -> None:
    with pytest.raises(PeerFailed, match="not the node that the hub names"):
        PeerConnection(serving.peer(ticket(), fingerprint="00" * 32))


@pytest.mark.slow
def test_strangers_who_say_little_are_sent_away(serving: Serving) -> None:
    began_at = time.monotonic()
    silent = [socket.create_connection(("127.0.0.1", serving.port), 60) for _ in range(MAX_PER_ADDRESS)]
    one_more = socket.create_connection(("127.0.0.1", serving.port), 60)
    assert one_more.recv(1) == b"", "there are too many of them"
    assert time.monotonic() - began_at < GREETING_S / 2
    # One sends its greeting byte by byte.
    slow = silent.pop()
    slow.settimeout(0.2)
    while time.monotonic() - began_at < 2 * GREETING_S:
        try:
            slow.send(b"\x16")
            if slow.recv(100) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    assert time.monotonic() - began_at < 1.5 * GREETING_S
    for connection in silent:
        # It says that nothing has come, or just closes.
        while connection.recv(100):
            pass
        connection.close()
    eventually(lambda: serving.answer(ticket(), 0) == OK, 5, "the others are not served any more")


def test_what_is_no_tls_ends_nothing(serving: Serving) -> None:
    for noise in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
        with socket.create_connection(("127.0.0.1", serving.port), 30) as connection:
            connection.sendall(noise)
    eventually(lambda: serving.answer(ticket(), 0) == OK, 5, "it serves nobody any more")


def test_its_keys_are_in_no_argument_and_no_variable(serving: Serving) -> None:
    for name in ("cmdline", "environ"):
        text = Path(f"/proc/{serving.process.pid}/{name}").read_bytes()
        assert KEY.hex().encode() not in text
        assert b"PRIVATE KEY" not in text
