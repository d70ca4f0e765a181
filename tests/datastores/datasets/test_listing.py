"""The hub lists the files of a store, with a real server and the process that lists them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from django.utils import timezone

from datastores.changes import create as create_datastore
from datastores.datasets import changes, file_list, listing
from datastores.models import DatasetVersion
from datastores.outgoing_proxy import OutgoingProxy
from tests.people import make_owner, principal_of
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import KEY_ID, SECRET
from workspaces.access import Principal
from workspaces.models import SecretUse
from workspaces.secrets import store

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(s3_server: S3Server) -> S3Server:
    s3_server.objects[BUCKET] = {"2024/a.bin": b"a", "2024/deep/b.bin": b"bb", "other/c.bin": b"ccc"}
    return s3_server


@pytest.fixture
def who(server: S3Server) -> Principal:
    """Somebody in a workspace with the datastore `bucket`."""
    owner = principal_of(make_owner())
    store.put(owner, "s3-key", SECRET, store.WORKSPACE)
    datastore(owner, server.url)
    return owner


def datastore(who: Principal, endpoint: str, name: str = "bucket", **more: str) -> None:
    fields = {"bucket": BUCKET, "endpoint": endpoint, "access_key_id": KEY_ID, "secret": "s3-key", **more}
    create_datastore(who, name, "s3", fields)


def listed(version: DatasetVersion) -> DatasetVersion:
    """The version after the worker's part."""
    listing.list_version(version.pk)
    return DatasetVersion.objects.select_related("dataset__datastore").get(pk=version.pk)


def paths(version: DatasetVersion) -> list[str]:
    return [file.path for file in file_list.read_page(version, 0, 1000)]


class TestList:
    def test_has_the_files_below_the_path(self, who: Principal) -> None:
        version = listed(changes.create(who, "birds", "bucket", "2024"))
        assert version.state == "ready", version.failure
        assert (version.files, version.bytes, version.is_file) == (2, 3, False)
        assert paths(version) == ["a.bin", "deep/b.bin"]
        assert SecretUse.objects.get().subject == "birds 1"
        assert SECRET not in str(vars(version))

    def test_of_one_file_has_that_one(self, who: Principal) -> None:
        version = listed(changes.create(who, "birds", "bucket", "2024/deep/b.bin"))
        assert (version.is_file, paths(version)) == (True, ["b.bin"])

    def test_of_many_files_has_all(self, who: Principal, server: S3Server) -> None:
        names = [f"2024/{number % 7}/{number:05d}" for number in range(3500)]
        server.objects[BUCKET] = dict.fromkeys(names, b"x")
        version = listed(changes.create(who, "birds", "bucket", "2024"))
        assert version.files == 3500
        expected = sorted(name.removeprefix("2024/") for name in names)
        assert [file.path for file in file_list.read_page(version, 0, 5000)] == expected

    def test_of_the_next_version_says_what_is_different(self, who: Principal, server: S3Server) -> None:
        first = listed(changes.create(who, "birds", "bucket", "2024"))
        server.objects[BUCKET] |= {"2024/a.bin": b"other", "2024/new.bin": b"n"}
        del server.objects[BUCKET]["2024/deep/b.bin"]
        second = listed(changes.refresh(who, first.dataset))
        assert (second.number, second.files) == (2, 2)
        result = file_list.differences_of(second)
        assert result is not None
        assert [
            [file.path for file in kind.first] for kind in (result.added, result.removed, result.changed)
        ] == [
            ["new.bin"],
            ["deep/b.bin"],
            ["a.bin"],
        ]
        assert paths(first) == ["a.bin", "deep/b.bin"], "the first version is as it was"


class TestFailure:
    def failure(self, version: DatasetVersion) -> str:
        ended = listed(version)
        assert ended.state == "failed"
        assert not hasattr(ended, "manifest")
        return ended.failure

    def test_names_a_path_that_is_not_there(self, who: Principal) -> None:
        sentence = self.failure(changes.create(who, "birds", "bucket", "2025"))
        assert sentence == "The bucket birds has nothing at 2025: check the path and its capital letters."

    def test_names_wrong_credentials_and_not_their_value(self, who: Principal, server: S3Server) -> None:
        store.put(who, "wrong", "not-the-secret-part", store.WORKSPACE)
        datastore(who, server.url, "wrong", secret="wrong")
        sentence = self.failure(changes.create(who, "birds", "wrong", ""))
        assert "The bucket birds refuses these credentials" in sentence
        assert "not-the-secret-part" not in sentence

    def test_names_a_secret_that_is_gone(self, who: Principal) -> None:
        version = changes.create(who, "birds", "bucket", "2024")
        store.delete(who, store.visible(who)[0])
        assert "no secret s3-key any more" in self.failure(version)

    def test_names_a_host_that_the_hub_does_not_ask(self, who: Principal, settings: Any) -> None:
        settings.IS_ON_LOOPBACK_ONLY = False
        sentence = self.failure(changes.create(who, "birds", "bucket", "2024"))
        assert "is at an address that the hub does not connect to (127.0.0.1)" in sentence

    def test_names_an_object_that_can_be_no_file(self, who: Principal, server: S3Server) -> None:
        server.objects[BUCKET]["2024/" + "x" * 300] = b"x"
        assert "whose name cannot be a file's" in self.failure(changes.create(who, "birds", "bucket", "2024"))

    def test_comes_when_no_worker_gets_to_the_end(self, who: Principal) -> None:
        version = changes.create(who, "birds", "bucket", "2024")
        DatasetVersion.objects.filter(pk=version.pk).update(attempts=listing.MAX_ATTEMPTS)
        assert "was interrupted each time" in self.failure(version)


class TestWorker:
    def test_lists_what_was_missed_and_what_another_worker_left(self, who: Principal) -> None:
        first = changes.create(who, "birds", "bucket", "2024")
        left = changes.create(who, "fish", "bucket", "other")
        long_ago = timezone.now() - 2 * listing.ABANDONED_AFTER
        DatasetVersion.objects.filter(pk=left.pk).update(begun_at=long_ago, seen_at=long_ago, attempts=1)
        listing.list_missed()
        states = dict(DatasetVersion.objects.values_list("pk", "state"))
        assert states == {first.pk: "ready", left.pk: "ready"}

    def test_leaves_what_another_one_lists(self, who: Principal) -> None:
        version = changes.create(who, "birds", "bucket", "2024")
        just_now = timezone.now() - timedelta(seconds=5)
        DatasetVersion.objects.filter(pk=version.pk).update(begun_at=just_now, seen_at=just_now)
        listing.list_missed()
        assert DatasetVersion.objects.get().state == "listing"

    def test_stops_when_the_dataset_is_deleted(
        self, who: Principal, server: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        version = changes.create(who, "birds", "bucket", "2024")
        server.lists.clear()

        def delete_meanwhile(_: DatasetVersion) -> str:
            changes.delete(who, version.dataset)
            return SECRET

        monkeypatch.setattr(listing, "_secret", delete_meanwhile)
        listing.list_version(version.pk)
        assert not DatasetVersion.objects.exists()
        assert not server.lists.is_set(), "it has not waited for the store"


class _Web(BaseHTTPRequestHandler):
    """Redirects to the address in its path, or answers with what it was asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        target = self.path.removeprefix("/to?")
        status = 302 if target != self.path else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", target)
        body = f"{self.path} {self.headers['Host']} {self.headers['X-Asked']}".encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class TestProxy:
    def test_passes_requests_on(self, web: str) -> None:
        with OutgoingProxy() as proxy, httpx.Client(proxy=proxy.url) as client:
            host = web.removeprefix("http://")
            for path in ("/a?b=c%20d", "/"):
                answer = client.get(f"{web}{path}", headers={"X-Asked": "yes"})
                assert answer.text == f"{path} {host} yes"

    def test_tunnels_to_what_it_may_reach(self, web: str) -> None:
        with OutgoingProxy() as proxy:
            assert tunnel(proxy, web.removeprefix("http://")).startswith(b"HTTP/1.1 200 OK")

    @pytest.mark.parametrize("target", ["169.254.169.254:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:80"])
    def test_refuses_other_addresses(self, target: str) -> None:
        with OutgoingProxy() as proxy:
            assert tunnel(proxy, target).startswith(b"HTTP/1.1 403")
            assert proxy.refused_host

    def test_refuses_a_redirect_to_one(self, web: str) -> None:
        with OutgoingProxy() as proxy, httpx.Client(proxy=proxy.url, follow_redirects=True) as client:
            assert client.get(f"{web}/to?http://169.254.169.254/latest/").status_code == 403
            assert proxy.refused_host == "169.254.169.254"

    def test_refuses_the_hubs_own_ports(self, web: str, settings: Any) -> None:
        settings.OWN_PORTS = {int(web.rpartition(":")[2])}
        with OutgoingProxy() as proxy:
            assert tunnel(proxy, web.removeprefix("http://")).startswith(b"HTTP/1.1 403")

    @pytest.mark.parametrize(
        "head", [b"nonsense\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n", b"\xff \xfe x\r\n\r\n"]
    )
    def test_refuses_connections_that_speak_something_else(self, head: bytes, web: str) -> None:
        with OutgoingProxy() as proxy:
            host, port = proxy.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.sendall(head)
                assert connection.recv(100).startswith(b"HTTP/1.1 400")
            assert tunnel(proxy, web.removeprefix("http://")).startswith(b"HTTP/1.1 200 OK"), "it goes on"


def tunnel(proxy: OutgoingProxy, target: str) -> bytes:
    """What comes back through a tunnel to `target`, or the proxy's own answer."""
    host, port = proxy.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = connection.recv(1000)
        if b" 200 Connected" not in head:
            return head
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(1000)
