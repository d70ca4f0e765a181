"""Requests are sent again only where that is safe, and each error says what to do."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hub import free_port
from tests.sdk.scripted_hub import Reply, Request, ScriptedHub, problem
from trainhub import certificates
from trainhub_sdk import api_connection, transfers
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import (
    HubRefused,
    HubUnreachable,
    NoProfile,
    NotAllowed,
    NotFound,
    SignInNeeded,
    TrainHubError,
)

BUSY = Reply(503, headers={"Retry-After": "0"})


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_connection, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(transfers, "PAUSE_S", 0.01)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@contextmanager
def connected(*replies: Reply, retry_s: float = 5) -> Iterator[tuple[ApiConnection, ScriptedHub]]:
    hub = ScriptedHub(*replies)
    with hub.serving() as url:
        api = ApiConnection(url, "t0ken", retry_s=retry_s)
        yield api, hub
        api.close()


@contextmanager
def tunnel_proxy(hub: str) -> Iterator[tuple[str, list[str]]]:
    """A proxy whose first tunnel leads to `hub`, whatever it is asked for. Yields its address, and the heads
    of the requests."""
    heads: list[str] = []

    def serve(server: socket.socket) -> None:
        client, _ = server.accept()
        heads.append(client.recv(65536).decode())
        target = socket.create_connection(("127.0.0.1", int(hub.rpartition(":")[2])))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with client, target:
            while ready := select.select([client, target], [], [], 10)[0]:
                piece = ready[0].recv(65536)
                if not piece:
                    return
                (target if ready[0] is client else client).sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heads
        thread.join(10)


class TestRepeating:
    def test_a_get_that_meets_a_busy_hub_is_repeated(self) -> None:
        with connected(BUSY, BUSY, Reply(body=b'{"a": 1}')) as (api, hub):
            assert api.get("/api/v1/me/", n=1, left_out=None) == {"a": 1}
        assert [request.path for request in hub.requests] == ["/api/v1/me/?n=1"] * 3
        assert hub.requests[0].headers["authorization"] == "Bearer t0ken"

    def test_it_waits_as_long_as_the_hub_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pauses: list[float] = []
        # Not `time.sleep` itself: threads of other tests may still sleep.
        clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
        monkeypatch.setattr(api_connection, "time", clock)
        with connected(Reply(429, headers={"Retry-After": "3"}), Reply()) as (api, _):
            api.get("/")
        assert pauses == [3]

    def test_a_post_is_sent_once_unless_it_has_a_key(self) -> None:
        with connected(BUSY, Reply()) as (api, hub):
            with pytest.raises(HubRefused):
                api.call("POST", "/", {})
            api.call("POST", "/", {}, headers={"Idempotency-Key": "k"})
        assert len(hub.requests) == 2

    def test_a_post_with_a_key_is_repeated(self) -> None:
        with connected(BUSY, Reply()) as (api, hub):
            api.call("POST", "/", {}, headers={"Idempotency-Key": "k"})
        assert len(hub.requests) == 2

    def test_it_ends_with_the_last_answer(self) -> None:
        refused = pytest.raises(HubRefused, match=r"\(503\): Later")
        with connected(problem(503, detail="Later"), retry_s=0.05) as (api, hub), refused:
            api.get("/")
        assert len(hub.requests) > 1

    def test_connections_are_kept(self) -> None:
        with connected(Reply()) as (api, hub):
            for _ in range(3):
                api.get("/")
        assert len({request.connection for request in hub.requests}) == 1


class TestErrors:
    @pytest.mark.parametrize(("status", "kind"), [(401, SignInNeeded), (403, NotAllowed), (404, NotFound)])
    def test_each_has_a_class(self, status: int, kind: type[HubRefused]) -> None:
        reply = problem(status, detail="No.", errors=[{"field": "a.b", "message": "is no"}])
        with connected(reply) as (api, _), pytest.raises(kind) as caught:
            api.get("/")
        assert caught.value.problems == [("a.b", "is no")]
        assert ("trainhub login" in str(caught.value)) == (status == 401)

    def test_another_server_is_no_hub(self) -> None:
        with (
            connected(Reply(404, b"<html>")) as (api, _),
            pytest.raises(NotFound, match=f"is {api.url} the addr"),
        ):
            api.get("/")

    def test_a_hub_without_tls_is_no_riddle(self) -> None:
        with ScriptedHub(Reply()).serving() as url, pytest.raises(HubUnreachable, match="with http://"):
            ApiConnection(url.replace("http:", "https:"), retry_s=60).get("/")

    def test_a_page_of_a_proxy_is_no_json(self) -> None:
        with connected(Reply(502, b"<html>"), retry_s=0) as (api, _), pytest.raises(HubRefused, match="502"):
            api.get("/")

    def test_nobody_is_there(self) -> None:
        url = f"http://127.0.0.1:{free_port()}"
        with pytest.raises(HubUnreachable, match=f"{url} cannot be reached: Connection refused"):
            ApiConnection(url, retry_s=0).get("/")

    def test_a_name_that_nobody_has_is_not_tried_for_long(self) -> None:
        started_at = time.monotonic()
        with pytest.raises(HubUnreachable, match=r"http://hub\.invalid"):
            ApiConnection("http://hub.invalid", retry_s=60).get("/")
        assert time.monotonic() - started_at < 30

    @pytest.mark.parametrize("url", ["hub.example", "http://hub.example:99999", "http://[::1", "https://:80"])
    def test_what_is_no_address_of_a_hub(self, url: str) -> None:
        with pytest.raises(NoProfile, match="https://host"):
            ApiConnection(url)

    @pytest.mark.parametrize("token", ["t0ken\nX: y", "t\N{CYRILLIC SMALL LETTER O}ken"])
    def test_what_is_no_token(self, token: str) -> None:
        with pytest.raises(NoProfile, match="Sign in again"):
            ApiConnection("http://hub.example", token)

    def test_another_authority_is_not_trusted_and_the_sentence_says_how(self, tmp_path: Path) -> None:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        for folder in (ours, theirs):
            certificates.ensure(folder, ["localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(ours / "server.pem", ours / "server-key.pem")
        with ScriptedHub(Reply()).serving(context) as url:
            assert ApiConnection(url, ca=str(ours / "ca.pem")).get("/") == {}
            with pytest.raises(HubUnreachable, match="sign in with --ca FILE"):
                ApiConnection(url, ca=str(theirs / "ca.pem"), retry_s=0).get("/")
        with pytest.raises(NoProfile, match="cannot be read"):
            ApiConnection(url, ca=str(tmp_path / "none"))

    def test_a_certificate_that_is_not_valid_yet_names_the_clock(self, tmp_path: Path) -> None:
        certificates.ensure(tmp_path, ["localhost"], datetime.now(UTC) + timedelta(days=40))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server-key.pem")
        refused = pytest.raises(HubUnreachable, match=r"not yet valid.*correct the clock")
        with ScriptedHub(Reply()).serving(context) as url, refused:
            ApiConnection(url, ca=str(tmp_path / "ca.pem"), retry_s=0).get("/")


class TestWays:
    def test_through_a_proxy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        proxy = ScriptedHub(Reply(body=b'{"by": "proxy"}'))
        with proxy.serving() as url:
            monkeypatch.setenv("http_proxy", url)
            assert ApiConnection("http://hub.invalid").get("/x") == {"by": "proxy"}
            monkeypatch.setenv("http_proxy", url.replace("//", "//ada:s%20t@"))
            ApiConnection("http://hub.invalid").get("/x")
            assert proxy.requests.pop().headers["proxy-authorization"] == "Basic YWRhOnMgdA=="
            monkeypatch.setenv("no_proxy", "hub.invalid")
            with pytest.raises(HubUnreachable):
                ApiConnection("http://hub.invalid", retry_s=0).get("/x")
        assert [request.path for request in proxy.requests] == ["http://hub.invalid/x"]

    def test_through_a_tunnel_of_a_proxy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        certificates.ensure(tmp_path, ["hub.invalid"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server-key.pem")
        with ScriptedHub(Reply(body=b'{"a": 1}')).serving(context) as hub, tunnel_proxy(hub) as (url, heads):
            monkeypatch.setenv("https_proxy", url.replace("//", "//ada:secret@"))
            assert ApiConnection("https://hub.invalid", ca=str(tmp_path / "ca.pem")).get("/") == {"a": 1}
        assert heads[0].startswith("CONNECT hub.invalid:443 ")
        assert "Proxy-Authorization: Basic YWRhOnNlY3JldA==" in heads[0]

    def test_a_proxy_that_is_away_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        port = free_port()
        monkeypatch.setenv("https_proxy", f"http://ada:secret@127.0.0.1:{port}")
        with pytest.raises(HubUnreachable, match=rf"refused \(through the proxy 127\.0\.0\.1:{port}\)"):
            ApiConnection("https://hub.invalid", retry_s=0).get("/")

    @pytest.mark.parametrize("address", ["socks5://ada:secret@127.0.0.1:1080", "http://127.0.0.1:port"])
    def test_a_proxy_that_cannot_be_used_is_named(
        self, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        monkeypatch.setenv("all_proxy", address)
        with pytest.raises(TrainHubError, match=r"NO_PROXY=hub\.invalid") as caught:
            ApiConnection("https://hub.invalid")
        assert "secret" not in str(caught.value)

    def test_below_a_path_and_with_whole_addresses_of_the_hub(self) -> None:
        hub = ScriptedHub(Reply())
        with hub.serving() as url:
            api = ApiConnection(f"{url}/train/")
            api.get("/api/v1/me/")
            api.get("https://another.example/train/api/v1/runs/?cursor=a%20b")
        assert [request.path for request in hub.requests] == [
            "/train/api/v1/me/",
            "/train/api/v1/runs/?cursor=a%20b",
        ]

    def test_pages_follow_next(self) -> None:
        first = Reply(body=b'{"results": [{"n": 1}], "next": "http://elsewhere/api/v1/runs/?cursor=x"}')
        last = Reply(body=b'{"results": [{"n": 2}], "next": null}')
        with connected(first, last, Reply(body=b'[{"n": 3}]')) as (api, hub):
            assert [row["n"] for row in api.pages("/api/v1/runs/", page_size=1)] == [1, 2]
            assert [row["n"] for row in api.pages("/api/v1/nodes/")] == [3]
        assert [request.path for request in hub.requests[:2]] == [
            "/api/v1/runs/?page_size=1",
            "/api/v1/runs/?cursor=x",
        ]


class TestDownloads:
    CONTENT = bytes(range(256)) * 40

    def serve(self, request: Request) -> Reply:
        """Breaks each answer off after 4,000 bytes."""
        start = int(request.headers.get("range", "bytes=0-").split("=")[1].rstrip("-"))
        rest = self.CONTENT[start:]
        cut = 4000 if len(rest) > 4000 else None
        return Reply(206 if start else 200, rest, cut=cut)

    def test_a_broken_one_continues_where_it_was(self, tmp_path: Path) -> None:
        hub = ScriptedHub(self.serve)
        with hub.serving() as url:
            transfers.download(ApiConnection(url), "/f", tmp_path / "a" / "f")
        assert (tmp_path / "a" / "f").read_bytes() == self.CONTENT
        ranges = [request.headers.get("range") for request in hub.requests]
        assert ranges == [None, "bytes=4000-", "bytes=8000-"]
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["f"]

    def test_another_content_is_not_kept(self, tmp_path: Path) -> None:
        refused = pytest.raises(TrainHubError, match="another content")
        with connected(Reply(body=b"x")) as (api, _), refused:
            transfers.download(api, "/f", tmp_path / "f", "0" * 64)
        assert list(tmp_path.iterdir()) == []
