"""Downloads of outputs that lie in a datastore: the hub streams them from a real server of S3's protocol."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from starlette.applications import Starlette

from datastores.models import Datastore
from datastores.object_reads import read_slots
from jobs.byte_routes import routes
from jobs.models import Run
from tests.attacks.blobs.served import served
from tests.hub import eventually
from tests.jobs.raw import bearing, opened, other_token
from tests.jobs.stored_outputs.builders import FILES, stored_run
from tests.people import make_owner, make_viewer, principal_of, token_of
from tests.stores.s3_server import BUCKET, S3Server
from workspaces.models import Secret, SecretUse
from workspaces.secrets import store as secret_store

pytestmark = pytest.mark.django_db(transaction=True)
# The kernel buffers up to 24 MiB of it between store and client.
LARGE_BYTES = 64 * 1024 * 1024


@cache
def large() -> bytes:
    return os.urandom(LARGE_BYTES)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as client:
        client.headers.update(await sync_to_async(lambda: bearing(token_of(make_viewer())))())
        yield client


@sync_to_async
def prepared(s3_server: S3Server) -> Run:
    return stored_run(principal_of(make_owner()), s3_server)[0]


def address(run: Run, path: str = "model.pt") -> str:
    return f"/api/v1/runs/{run.pk}/outputs/{path}"


class TestDownload:
    async def test_has_the_bytes_and_the_headers_of_all_others(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        answer = await client.get(address(run))
        assert (answer.status_code, answer.content) == (200, FILES["model.pt"])
        digest = hashlib.sha256(FILES["model.pt"]).hexdigest()
        assert answer.headers["etag"] == f'"{digest}"'
        assert answer.headers["content-length"] == "7000"
        assert answer.headers["content-disposition"] == 'attachment; filename="model.pt"'
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert answer.headers["cache-control"] == "private, no-cache"
        assert (await client.get(address(run, "plots/loss.txt"))).content == b"0.5\n"
        use = await SecretUse.objects.aget()
        assert (use.kind, use.subject, use.count) == ("datastore", "bucket", 2)

    async def test_of_an_empty_file(self, client: httpx.AsyncClient, s3_server: S3Server) -> None:
        owner = await sync_to_async(lambda: principal_of(make_owner()))()
        run, _ = await sync_to_async(stored_run)(owner, s3_server, {"empty": b""})
        answer = await client.get(address(run, "empty"))
        assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")

    async def test_head_and_conditions_do_not_ask_the_store(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        head = await client.head(address(run))
        assert (head.status_code, head.headers["content-length"], head.content) == (200, "7000", b"")
        unchanged = await client.get(address(run), headers={"If-None-Match": head.headers["etag"]})
        assert unchanged.status_code == 304
        stale = await client.get(address(run), headers={"If-Match": '"other"'})
        assert stale.status_code == 412
        beyond = await client.get(address(run), headers={"Range": "bytes=7000-"})
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */7000")
        assert s3_server.requests == []

    async def test_of_a_range_reads_no_more_than_that(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        answer = await client.get(address(run), headers={"Range": "bytes=7-13"})
        assert (answer.status_code, answer.content) == (206, b"weights")
        assert answer.headers["content-range"] == "bytes 7-13/7000"
        assert s3_server.sent == 7
        several = await client.get(address(run), headers={"Range": "bytes=0-1,5-6"})
        assert (several.status_code, several.content) == (200, FILES["model.pt"])

    async def test_is_refused_before_anything_is_told(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        etag = f'"{hashlib.sha256(FILES["model.pt"]).hexdigest()}"'
        stranger = bearing(await sync_to_async(other_token)())
        for more in ({}, {"If-None-Match": etag}, {"Range": "bytes=0-1"}):
            answer = await client.get(address(run), headers={**stranger, **more})
            assert answer.status_code == 404
        assert s3_server.requests == []


class TestWhatIsWrong:
    async def test_in_the_store_is_said_with_its_remedy(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        objects = s3_server.objects[BUCKET]
        key = f"results/run-{run.number}/1/model.pt"
        objects[key] = b"x" * 6999
        answer = await client.get(address(run))
        assert answer.status_code == 502
        assert "has another" in answer.json()["detail"]
        assert "6,999 bytes in place of 7,000" in answer.json()["detail"]
        del objects[key]
        assert f"has no {key}" in (await client.get(address(run))).json()["detail"]
        owner = await sync_to_async(lambda: principal_of(make_owner()))()
        await sync_to_async(secret_store.put)(owner, "s3-key", "wrong", secret_store.WORKSPACE)
        refused = (await client.get(address(run))).json()["detail"]
        assert "refuses these credentials" in refused
        await Secret.objects.all().adelete()
        gone = await client.get(address(run))
        assert gone.status_code == 409
        assert "no secret s3-key any more" in gone.json()["detail"]

    async def test_other_bytes_of_the_same_size_are_not_sent(
        self, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        s3_server.objects[BUCKET][f"results/run-{run.number}/1/model.pt"] = b"x" * 7000
        answer = await client.get(address(run))
        assert answer.status_code == 502
        assert "has another SHA-256" in answer.json()["detail"]

    async def test_an_address_that_the_hub_does_not_reach_stays_unreached(
        self, client: httpx.AsyncClient, s3_server: S3Server, settings: Any
    ) -> None:
        run = await prepared(s3_server)
        settings.OWN_PORTS = {s3_server.server_address[1]}
        answer = await client.get(address(run))
        assert answer.status_code == 502
        assert "at an address that the hub does not connect to" in answer.json()["detail"]
        assert s3_server.requests == []

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"kind": "folder", "path": "/mnt/r"}, "read it on a node, at that path"),
            ({"sign_in": "node"}, "sign in to the store yourself"),
            (None, "its datastore was deleted"),
        ],
    )
    async def test_what_the_hub_cannot_read_names_the_place(
        self, changes: dict[str, Any] | None, words: str, client: httpx.AsyncClient, s3_server: S3Server
    ) -> None:
        run = await prepared(s3_server)
        rows = Datastore.objects.all()
        await (rows.adelete() if changes is None else rows.aupdate(**changes))
        for method in ("GET", "HEAD"):
            assert (await client.request(method, address(run))).status_code == 409
        detail = (await client.get(address(run))).json()["detail"]
        assert words in detail
        assert f"s3://{BUCKET}/results/run-{run.number}/1/model.pt" in detail


class TestManyAndSlow:
    """Behind a real web s3_server, over sockets."""

    @pytest.fixture
    def hub(self) -> Iterator[httpx.Client]:
        with served(Starlette(routes=routes)) as (host, port):
            headers = bearing(token_of(make_viewer()))
            with httpx.Client(base_url=f"http://{host}:{port}", headers=headers, timeout=60) as client:
                yield client

    @pytest.fixture
    def run(self, s3_server: S3Server) -> Run:
        return stored_run(principal_of(make_owner()), s3_server, {"large.bin": large()})[0]

    def readers(self) -> list[str]:
        """The processes of this one that read a store."""
        done = subprocess.run(
            ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
        )
        return [line for line in done.stdout.splitlines() if "datastores.store_reader" in line]

    def test_a_large_file_arrives_whole(self, hub: httpx.Client, run: Run) -> None:
        assert hub.get(address(run, "large.bin")).content == large()

    def test_the_end_of_a_wrong_file_is_held_back(
        self, hub: httpx.Client, run: Run, s3_server: S3Server
    ) -> None:
        s3_server.objects[BUCKET][f"results/run-{run.number}/1/large.bin"] = large()[:-1] + b"!"
        received: list[bytes] = []
        with hub.stream("GET", address(run, "large.bin")) as answer, pytest.raises(httpx.RemoteProtocolError):
            received.extend(answer.iter_raw())
        assert 0 < sum(map(len, received)) < LARGE_BYTES

    def test_a_client_that_goes_away_ends_the_process(
        self, hub: httpx.Client, run: Run, s3_server: S3Server
    ) -> None:
        s3_server.hold_from = 16 * 1024 * 1024
        with hub.stream("GET", address(run, "large.bin")) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            assert len(self.readers()) == 1
        eventually(lambda: not self.readers(), 20, "the process has ended")
        eventually(lambda: not read_slots._reads.total(), 20, "its place is free")

    def test_a_client_that_does_not_read_holds_the_store_back(
        self, hub: httpx.Client, run: Run, s3_server: S3Server
    ) -> None:
        with hub.stream("GET", address(run, "large.bin")) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            # All of it would be there within a second.
            time.sleep(3)
            assert s3_server.sent < LARGE_BYTES

    def test_a_store_that_stalls_is_given_up(
        self, hub: httpx.Client, run: Run, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("datastores.object_reads.store_stream.STALL_S", 3.0)
        s3_server.hold_from = 0
        answer = hub.get(address(run, "large.bin"))
        assert answer.status_code == 502
        assert "sends nothing for 3 s" in answer.json()["detail"]

    def test_too_many_at_once_are_told_to_come_again(
        self, hub: httpx.Client, run: Run, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(read_slots, "MAX_READS_OF_WORKSPACE", 1)
        monkeypatch.setattr(read_slots, "MAX_WAIT_S", 0.5)
        s3_server.hold_from = 16 * 1024 * 1024
        with hub.stream("GET", address(run, "large.bin")) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            busy = hub.get(address(run, "large.bin"))
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "5")
        assert "as many files of datastores as it may" in busy.json()["detail"]
