"""Downloads of files that are only in the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.attacks.blobs.served import served
from tests.hub import eventually
from tests.stores.s3_server import S3Server
from tests.workspaces.object_store.conftest import reconfigure
from tests.workspaces.object_store.files import objects, row_of, uploaded
from trainhub_node.link.hub_client import HubClient
from trainhub_sdk import transfers
from trainhub_sdk.api_connection import ApiConnection
from workspaces.stored_files import blob_cache, blobs
from workspaces.stored_files.object_responses import REDIRECT_HEADER, REDIRECT_VALUE
from workspaces.stored_files.responses import StoredFileResponse

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = os.urandom(5 * 2**20 + 321)
REDIRECTED = {REDIRECT_HEADER: REDIRECT_VALUE}


async def download(request: Request) -> Response:
    sha256 = request.path_params["sha256"]
    return StoredFileResponse(blobs.path(sha256), sha256=sha256, filename="weights.bin")


@pytest.fixture
def client(store: S3Server) -> Iterator[httpx.Client]:
    app = Starlette(routes=[Route("/{sha256}", download)])
    with served(app) as (host, port), httpx.Client(base_url=f"http://{host}:{port}") as opened:
        yield opened


@pytest.fixture
def sha256(store: S3Server) -> str:
    return uploaded(CONTENT, is_local=False)


def test_the_whole_file_comes_from_the_store_and_leaves_a_copy(client: httpx.Client, sha256: str) -> None:
    answer = client.get(f"/{sha256}")
    assert answer.content == CONTENT
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    # The copy gets its name when the last byte has been sent.
    assert eventually(blobs.path(sha256).exists)
    assert blobs.path(sha256).read_bytes() == CONTENT


def test_a_range_reads_only_that_range_from_the_store(
    client: httpx.Client, sha256: str, store: S3Server
) -> None:
    sent = store.sent
    answer = client.get(f"/{sha256}", headers={"Range": "bytes=1000000-1000999"})
    assert (answer.status_code, answer.content) == (206, CONTENT[1_000_000:1_001_000])
    assert answer.headers["Content-Range"] == f"bytes 1000000-1000999/{len(CONTENT)}"
    assert store.sent - sent == 1000
    assert not blobs.path(sha256).exists()


def test_several_ranges_and_conditions_answer_as_from_the_disk(client: httpx.Client, sha256: str) -> None:
    assert client.head(f"/{sha256}").headers["Content-Length"] == str(len(CONTENT))
    assert client.get(f"/{sha256}", headers={"If-None-Match": f'"{sha256}"'}).status_code == 304
    assert client.get(f"/{sha256}", headers={"Range": f"bytes={len(CONTENT)}-"}).status_code == 416
    answer = client.get(f"/{sha256}", headers={"Range": "bytes=0-9,100-109"})
    assert answer.status_code == 206
    assert CONTENT[:10] in answer.content
    assert CONTENT[100:110] in answer.content


def test_other_bytes_never_arrive_whole(client: httpx.Client, sha256: str, store: S3Server) -> None:
    objects(store)[f"hub/{row_of(sha256).key}"] = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"/{sha256}")
    assert not blobs.path(sha256).exists()


def test_while_the_store_is_away_it_says_so_and_when_to_try_again(
    client: httpx.Client, sha256: str, store: S3Server
) -> None:
    store.is_away = True
    for headers in ({}, {"Range": "bytes=0-9"}):
        answer = client.get(f"/{sha256}", headers=headers)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
        assert "BLOB_STORE_ENDPOINT" in answer.json()["detail"]
    store.is_away = False
    assert client.get(f"/{sha256}").content == CONTENT


def test_without_room_for_a_copy_it_is_sent_all_the_same(
    client: httpx.Client, sha256: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_cache, "_usage", blob_cache._Usage())
    reconfigure(settings, cache_bytes=1000)
    assert client.get(f"/{sha256}").content == CONTENT
    assert not blobs.path(sha256).exists()


class TestRedirects:
    def test_a_client_that_asks_for_it_reads_from_the_store(
        self, client: httpx.Client, sha256: str, settings: Any
    ) -> None:
        reconfigure(settings, is_presigned=True)
        answer = client.get(f"/{sha256}", headers=REDIRECTED)
        assert answer.status_code == 307
        assert httpx.get(answer.headers["Location"]).content == CONTENT
        span = httpx.get(answer.headers["Location"], headers={"Range": "bytes=5-9"})
        assert (span.status_code, span.content) == (206, CONTENT[5:10])

    def test_others_and_other_hubs_do_not(self, client: httpx.Client, sha256: str, settings: Any) -> None:
        assert client.get(f"/{sha256}", headers=REDIRECTED).status_code == 200
        reconfigure(settings, is_presigned=True)
        assert client.get(f"/{sha256}").status_code == 200

    def test_the_address_is_the_public_one(self, client: httpx.Client, sha256: str, settings: Any) -> None:
        reconfigure(settings, is_presigned=True, public_endpoint="https://files.example.org")
        answer = client.get(f"/{sha256}", headers=REDIRECTED)
        assert answer.headers["Location"].startswith("https://files.example.org/birds/hub/")


class TestClients:
    """What nodes and the SDK do with a hub that sends them to the store, and where they do not reach it."""

    @pytest.fixture(params=[True, False], ids=["reached", "not-reached"])
    def is_reached(self, request: pytest.FixtureRequest, client: httpx.Client, settings: Any) -> bool:
        public = "" if request.param else "http://127.0.0.1:9"
        reconfigure(settings, is_presigned=True, public_endpoint=public)
        return bool(request.param)

    @pytest.mark.parametrize("known", [0, 1000, len(CONTENT)])
    def test_a_node(
        self, client: httpx.Client, sha256: str, is_reached: bool, tmp_path: Path, known: int
    ) -> None:
        to = tmp_path / "arrived"
        to.write_bytes(CONTENT[:known])
        HubClient(str(client.base_url), "token").download(f"/{sha256}", to)
        assert to.read_bytes() == CONTENT
        # A copy on the hub's disk shows that the hub has sent it all.
        is_copied = not is_reached and not known
        assert eventually(blobs.path(sha256).exists) if is_copied else not blobs.path(sha256).exists()

    def test_the_sdk(self, client: httpx.Client, sha256: str, is_reached: bool, tmp_path: Path) -> None:
        api = ApiConnection(str(client.base_url), "token")
        to = transfers.download(api, f"/{sha256}", tmp_path / "arrived", sha256)
        assert to.read_bytes() == CONTENT
        assert api.reads_from_store == is_reached
        assert not blobs.path(sha256).exists() if is_reached else eventually(blobs.path(sha256).exists)

    def test_the_token_does_not_leave_for_the_store(
        self, client: httpx.Client, sha256: str, is_reached: bool, store: S3Server, tmp_path: Path
    ) -> None:
        """A store answers a request with two kinds of credentials with an error, and then the hub would have
        sent the file."""
        api = ApiConnection(str(client.base_url), "token")
        transfers.download(api, f"/{sha256}", tmp_path / "arrived", sha256)
        assert not any("token" in header for header in store.authorizations)
