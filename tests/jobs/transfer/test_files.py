from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from io import BytesIO

import httpx
import pytest
from asgiref.sync import sync_to_async

from tests.jobs.builders import snapshot
from tests.jobs.raw import Upload, bearing, claimed, contributor, enrolled, other_principal
from tests.people import make_viewer, token_of
from workspaces.stored_files import blobs

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


class TestSnapshots:
    async def test_a_node_gets_what_it_has_to_run_and_only_that(self, client: httpx.AsyncClient) -> None:
        alpha, headers = await enrolled()
        who, _ = await contributor()
        run = await claimed(who, alpha)
        other = await sync_to_async(snapshot)(who, {"other.py": "1"})
        answer = await client.get(f"/api/v1/snapshots/{run.spec['source']['id']}", headers=headers)
        assert zipfile.ZipFile(BytesIO(answer.content)).namelist() == ["train.py"]
        assert (await client.get(f"/api/v1/snapshots/{other.sha256}", headers=headers)).status_code == 404

    async def test_in_ranges(self, client: httpx.AsyncClient) -> None:
        who, headers = await contributor()
        made = await sync_to_async(snapshot)(who)
        whole = (await client.get(f"/api/v1/snapshots/{made.sha256}", headers=headers)).content
        answer = await client.get(
            f"/api/v1/snapshots/{made.sha256}", headers={**headers, "Range": "bytes=10-"}
        )
        assert (answer.status_code, answer.content) == (206, whole[10:])

    async def test_not_those_of_another_workspace(self, client: httpx.AsyncClient) -> None:
        _, headers = await contributor()
        other = await sync_to_async(other_principal)()
        made = await sync_to_async(snapshot)(other, {"secret.py": "1"})
        assert (await client.get(f"/api/v1/snapshots/{made.sha256}", headers=headers)).status_code == 404


class TestUploads:
    async def test_in_pieces_until_whole(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        data = os.urandom(1000)
        url = f"/api/v1/uploads/{hashlib.sha256(data).hexdigest()}"
        first = await client.head(url, headers=headers)
        assert (first.headers["upload-offset"], first.headers["upload-complete"]) == ("0", "false")
        await Upload(client, url, headers, data).put(0, 600)
        assert (await client.head(url, headers=headers)).headers["upload-offset"] == "600"
        answer = await Upload(client, url, headers, data).put(600, 1000)
        assert answer.headers["upload-complete"] == "true"
        assert blobs.path(hashlib.sha256(data).hexdigest()).read_bytes() == data
        again = await Upload(client, url, headers, data).put(0, 1000)
        assert (again.status_code, again.headers["upload-complete"]) == (200, "true")

    async def test_a_file_that_the_node_has_sent_for_its_attempt_is_not_read_again(
        self, client: httpx.AsyncClient
    ) -> None:
        alpha, headers = await enrolled()
        who, _ = await contributor()
        await claimed(who, alpha)
        data = os.urandom(100)
        sha256 = hashlib.sha256(data).hexdigest()
        url = f"/api/v1/uploads/{sha256}"
        await Upload(client, url, headers, data).put(0, 100)
        # Other bytes: they would be refused if they were compared with the hash.
        again = await Upload(client, url, headers, bytes(100)).put(0, 100)
        assert (again.status_code, again.headers["upload-complete"]) == (200, "true")
        assert blobs.path(sha256).read_bytes() == data

    async def test_a_piece_at_the_wrong_offset_names_the_right_one(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        data = os.urandom(1000)
        url = f"/api/v1/uploads/{hashlib.sha256(data).hexdigest()}"
        answer = await Upload(client, url, headers, data).put(500, 1000)
        assert (answer.status_code, answer.headers["upload-offset"]) == (409, "0")

    async def test_other_bytes_than_promised_begin_anew(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        url = f"/api/v1/uploads/{secrets.token_hex(32)}"
        answer = await Upload(client, url, headers, b"x" * 10).put(0, 10)
        assert answer.status_code == 422
        assert (await client.head(url, headers=headers)).headers["upload-offset"] == "0"

    async def test_an_empty_file_is_a_file(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        url = f"/api/v1/uploads/{hashlib.sha256(b'').hexdigest()}"
        answer = await client.put(url, headers={**headers, "Content-Range": "bytes */0"}, content=b"")
        assert answer.headers["upload-complete"] == "true"

    async def test_two_uploaders_do_not_meet(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        _, person = await contributor()
        data = os.urandom(100)
        url = f"/api/v1/uploads/{hashlib.sha256(data).hexdigest()}"
        await Upload(client, url, headers, data).put(0, 50)
        assert (await client.head(url, headers=person)).headers["upload-offset"] == "0"

    async def test_a_person_does_not_learn_that_a_file_exists_elsewhere(
        self, client: httpx.AsyncClient
    ) -> None:
        _, headers = await enrolled()
        _, person = await contributor()
        data = os.urandom(100)
        url = f"/api/v1/uploads/{hashlib.sha256(data).hexdigest()}"
        await Upload(client, url, headers, data).put(0, 100)
        assert (await client.head(url, headers=person)).headers["upload-complete"] == "false"

    async def test_a_viewer_uploads_nothing(self, client: httpx.AsyncClient) -> None:
        token = await sync_to_async(lambda: token_of(make_viewer()))()
        headers = bearing(token)
        answer = await Upload(client, f"/api/v1/uploads/{'0' * 64}", headers, b"x").put(0, 1)
        assert answer.status_code == 403

    @pytest.mark.parametrize(
        ("span", "status"),
        [
            ("", 400),
            ("bytes 5-1/10", 400),
            ("bytes 0-10/10", 400),
            ("bytes */5", 400),
            ("bytes 0-8388608/9000000", 413),
            ("bytes 0-0/999999999999999", 413),
            ("bytes 0-4/10", 400),
        ],
    )
    async def test_a_range_that_makes_no_sense_is_refused(
        self, client: httpx.AsyncClient, span: str, status: int
    ) -> None:
        _, headers = await enrolled()
        url = f"/api/v1/uploads/{secrets.token_hex(32)}"
        answer = await client.put(url, headers={**headers, "Content-Range": span}, content=b"x")
        assert answer.status_code == status

    @pytest.mark.parametrize("name", ["..", "x" * 64, "A" * 64])
    async def test_only_a_hash_names_a_file(self, client: httpx.AsyncClient, name: str) -> None:
        _, headers = await enrolled()
        assert (await client.head(f"/api/v1/uploads/{name}", headers=headers)).status_code in (400, 404)
