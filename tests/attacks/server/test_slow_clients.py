"""Finding S8: about 1,000 half-open connections silenced the hub, and a request's head could take for ever.

These tests attack the hub's own protocols with a small application behind them; `test_hub_under_attack`
attacks a whole hub."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import websockets.sync.client as websocket_client

from tests.attacks.server.conftest import SmallServer, Start, is_closed

HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
POST = b"POST /length HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
SHORT = {"handshake": 1, "head": 1, "body": 1, "stalled": 1}


class TestHeads:
    def test_more_half_open_heads_than_open_files_do_not_silence_the_server(
        self, start_server: Start
    ) -> None:
        server = start_server(files=1024)
        with contextlib.ExitStack() as stack:
            for _ in range(1100):
                # Some are closed by the server while we still send.
                with contextlib.suppress(OSError):
                    stack.enter_context(server.connect(HALF_A_HEAD))
            for _ in range(20):
                assert server.get().text == "hello"
            assert server.open_files() < 900

    @pytest.mark.parametrize(
        "sent", [b"", HALF_A_HEAD, b"\r\n"], ids=["nothing", "half a head", "an empty line"]
    )
    def test_a_connection_without_a_complete_head_is_closed(self, start_server: Start, sent: bytes) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(sent) as line:
            assert is_closed(line, 5)

    @pytest.mark.parametrize("drop", [b"\r\n", b"a"], ids=["empty lines", "letters"])
    def test_a_head_that_comes_byte_by_byte_is_closed_too(self, start_server: Start, drop: bytes) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(b"" if drop == b"\r\n" else HALF_A_HEAD) as line:
            assert self._closes_while_sending(line, drop)

    def test_nor_can_a_second_request_of_a_connection_take_for_ever(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") as line:
            assert b"200 OK" in line.recv(65536)
            line.sendall(HALF_A_HEAD)
            assert self._closes_while_sending(line, b"a")

    @pytest.mark.parametrize("is_one_field", [True, False])
    def test_a_head_of_megabytes_is_refused(self, start_server: Start, is_one_field: bool) -> None:
        server = start_server()
        field = b"a" * 3_000_000 if is_one_field else b"a\r\nX-B: " * 400_000
        with server.connect(HALF_A_HEAD) as line:
            with contextlib.suppress(OSError):
                line.sendall(field)
            with contextlib.suppress(ConnectionResetError):
                assert line.recv(65536).startswith(b"HTTP/1.1 431 ")
            assert is_closed(line, 5)

    @pytest.mark.parametrize(
        "head", [b"X-A: " + b"a" * 70_000 + b"\r\n", b"X-A: a\r\n" * 300], ids=["long", "many fields"]
    )
    def test_a_head_that_is_too_large_is_told_so(self, start_server: Start, head: bytes) -> None:
        server = start_server()
        with server.connect(b"GET / HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n") as line:
            assert line.recv(65536).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")

    def test_a_large_head_within_the_limit_is_taken(self, start_server: Start) -> None:
        server = start_server()
        assert server.get(headers={"X-A": "a" * 60_000}).text == "hello"

    @staticmethod
    def _closes_while_sending(line: socket.socket, drop: bytes) -> bool:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                line.sendall(drop)
            except OSError:
                return True
            if is_closed(line, 0.1):
                return True
        return False


class TestBodies:
    @pytest.mark.parametrize(
        "credentials", [b"", b"Authorization: Bearer thr_wrong\r\n"], ids=["nobody", "a wrong token"]
    )
    def test_a_body_that_stops_is_closed(self, start_server: Start, credentials: bytes) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(POST, credentials, b"\r\n", b"some") as line:
            assert is_closed(line, 5)

    def test_a_body_that_drips_is_closed(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(POST, b"\r\n") as line:
            assert TestHeads._closes_while_sending(line, b"a")

    def test_a_body_that_drips_after_its_answer_is_closed(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(POST.replace(b"/length", b"/refuse"), b"\r\n", b"a") as line:
            assert b"401" in line.recv(65536)
            assert TestHeads._closes_while_sending(line, b"a")

    def test_a_slow_but_steady_body_is_read(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(POST, b"\r\n") as line:
            for _ in range(25):
                line.sendall(b"a" * 4000)
                time.sleep(0.1)  # the client's own slowness is what is tested
            line.settimeout(10)
            assert line.recv(65536).endswith(b"100000")

    def test_an_answer_that_is_not_read_is_given_up(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") as line:
            time.sleep(3)  # the client's own slowness is what is tested
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while chunk := line.recv(2**20):
                    received += len(chunk)
            assert received < 2**25

    def test_an_answer_that_is_read_slowly_arrives(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with server.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") as line:
            received = 0
            while received < 2**25:
                received += len(line.recv(2**20))
                time.sleep(0.05)  # the client's own slowness is what is tested


class TestTls:
    def test_a_handshake_that_is_not_finished_is_closed(self, start_server: Start, tmp_path: Path) -> None:
        server = start_server(tls=tmp_path, timeouts=SHORT)
        with server.connect(b"") as silent, server.connect(b"\x16\x03\x01\x02\x00\x01") as begun:
            assert is_closed(silent, 5)
            assert is_closed(begun, 5)
        assert server.get().text == "hello"

    def test_unfinished_handshakes_do_not_silence_the_server(
        self, start_server: Start, tmp_path: Path
    ) -> None:
        server = start_server(tls=tmp_path, files=1024)
        with contextlib.ExitStack() as stack:
            for _ in range(1100):
                with contextlib.suppress(OSError):
                    stack.enter_context(server.connect(b"\x16\x03\x01"))
            for _ in range(5):
                assert server.get().text == "hello"

    def test_what_is_no_tls_is_closed(self, start_server: Start, tmp_path: Path) -> None:
        server = start_server(tls=tmp_path)
        with server.connect(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") as line:
            assert is_closed(line, 5)

    def test_bodies_and_many_requests_pass(self, start_server: Start, tmp_path: Path) -> None:
        server = start_server(tls=tmp_path)
        context = ssl.create_default_context(cafile=server.authority)
        with httpx.Client(base_url=server.url, verify=context) as client:
            for size in (0, 1, 5_000_000):
                assert client.post("/length", content=b"a" * size).text == str(size)
            assert len(client.get("/large").content) == 2**25
            assert client.get("/who").json()["scheme"] == "https"

    @pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
    def test_old_versions_of_tls_are_refused(self, start_server: Start, tmp_path: Path) -> None:
        """Of the review's table "What was tried and held"."""
        server = start_server(tls=tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(server.authority)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with server.connect() as line, pytest.raises(ssl.SSLError):
            context.wrap_socket(line, server_hostname="127.0.0.1")


class TestOthers:
    def test_hundreds_of_clients_at_one_address_keep_their_connections(self, start_server: Start) -> None:
        """300 nodes behind one address, while that address also holds as many half-open heads as it may."""
        server = start_server(files=4096)
        head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        with contextlib.ExitStack() as stack:
            nodes = [stack.enter_context(server.connect()) for _ in range(300)]
            self._all_answered(nodes, head)
            for _ in range(700):
                with contextlib.suppress(OSError):
                    stack.enter_context(server.connect(HALF_A_HEAD))
            self._all_answered(nodes, head)

    def test_sockets_stay_open_beyond_every_limit_for_heads(self, start_server: Start) -> None:
        server = start_server(timeouts=SHORT)
        with websocket_client.connect(server.url.replace("http", "ws") + "/echo") as socket_:
            for _ in range(3):
                time.sleep(0.7)  # longer than a head may take, in all
                socket_.send("still here")
                assert socket_.recv(5) == "still here"

    def test_connections_of_ended_sockets_are_counted_no_more(self, start_server: Start) -> None:
        server = start_server(files=600)  # which leaves room for 344 connections
        for _ in range(400):
            with websocket_client.connect(server.url.replace("http", "ws") + "/echo") as socket_:
                socket_.send("a")
                assert socket_.recv(5) == "a"
        assert server.get().text == "hello"

    @staticmethod
    def _all_answered(lines: list[socket.socket], head: bytes) -> None:
        def ask(line: socket.socket) -> bool:
            line.sendall(head)
            return b"200 OK" in line.recv(65536)

        with ThreadPoolExecutor(20) as pool:
            assert all(pool.map(ask, lines))


class TestProxies:
    SPOOFED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}

    def test_what_anybody_says_about_its_address_changes_nothing(self, start_server: Start) -> None:
        """Finding S9 (b): uvicorn believed the loopback."""
        server = start_server()
        assert server.get("/who", headers=self.SPOOFED).json() == {"client": "127.0.0.1", "scheme": "http"}

    def test_a_named_proxy_is_believed(self, start_server: Start) -> None:
        server = start_server(proxies=["127.0.0.0/8", "10.1.0.0/16"])
        assert server.get("/who", headers=self.SPOOFED).json() == {"client": "203.0.113.9", "scheme": "https"}

    def test_of_several_addresses_the_last_that_is_no_proxy_counts(self, start_server: Start) -> None:
        server = start_server(proxies=["127.0.0.1", "10.1.0.0/16"])
        chain = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.1.2.3"}
        assert server.get("/who", headers=chain).json()["client"] == "203.0.113.9"

    def test_another_proxy_is_not_believed(self, start_server: Start) -> None:
        server: SmallServer = start_server(proxies=["10.1.0.0/16"])
        assert server.get("/who", headers=self.SPOOFED).json()["client"] == "127.0.0.1"
