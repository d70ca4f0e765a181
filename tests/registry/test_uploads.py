from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from httpx import ASGITransport, AsyncClient, Response

from registry import file_paths
from registry.models import ModelVersion, RegisteredModel
from tests.people import make_contributor, make_viewer, token_of
from tests.registry.builders import blob
from trainhub.asgi import application
from workspaces.models import User
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/api/v1/models/digits/versions/upload"
PART = b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
FILES = [("files", ("net/weights.bin", b"w" * 300_000)), ("files", ("README.md", b"# read me"))]


async def send(who: User | None = None, address: str = ADDRESS, **more: Any) -> Response:
    token = await sync_to_async(lambda: token_of(who or make_contributor()))()
    headers = {"Authorization": f"Bearer {token}"} | more.pop("headers", {})
    async with AsyncClient(transport=ASGITransport(application), base_url="http://testserver") as client:
        return await client.post(address, headers=headers, **({"files": FILES} | more))


def kept() -> set[str]:
    """Every blob, and what is half-written."""
    return {path.name for path in (settings.DATA_DIR / "blobs").glob("*/*")}


async def versions() -> int:
    return await sync_to_async(ModelVersion.objects.count)()


class TestUpload:
    async def test_files_with_their_folders_become_the_next_version(self) -> None:
        answer = await send(data={"description": "from a colleague"})
        told = answer.json()
        assert (answer.status_code, answer.headers["location"]) == (201, "/models/digits/versions/1/")
        assert (told["kind"], told["run"], told["created_by"]) == ("upload", None, "carl")
        assert told["description"] == "from a colleague"
        assert [(file["path"], file["size_bytes"]) for file in told["files"]] == [
            ("README.md", 9),
            ("net/weights.bin", 300_000),
        ]
        assert blobs.path(told["files"][1]["sha256"]).read_bytes() == b"w" * 300_000
        assert (await send()).json()["version"] == 2

    async def test_what_leads_out_or_is_there_twice_is_refused_and_nothing_is_kept(self) -> None:
        before = kept()
        for names in (["../x"], ["/etc/passwd"], ["a", "a"], ["a\\b"], ["trainhub-certificate.json"], []):
            files = [("files", (name, b"only for this test" + name.encode())) for name in names]
            answer = await send(files=files or None, data={"description": "x"} if files else {"a": "b"})
            assert answer.status_code == 400, names
        assert kept() == before
        assert await versions() == 0

    async def test_one_that_is_cut_in_the_middle_leaves_nothing(self) -> None:
        before = kept()

        async def cut() -> AsyncIterator[bytes]:
            yield (
                b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.bin"\r\n\r\nwhole '
                b"of one\r\n"
            )
            yield (
                b'--b\r\nContent-Disposition: form-data; name="files"; filename="b.bin"\r\n\r\nhalf '
                b"of another"
            )

        answer = await send(
            files=None, content=cut(), headers={"Content-Type": "multipart/form-data; boundary=b"}
        )
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "files")
        assert kept() == before
        assert await versions() == 0

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"no form at all", "cannot be read"),
            (b"--b\r\nX-Long: " + b"x" * 20_000, "header"),
            (PART % (b"files", b'; filename="\xff"', b"x"), "a file's name is not UTF-8"),
            (PART % (b"description", b"", b"x" * 300_000), "description: is longer than 262144 bytes"),
            (PART % (b"description", b"", b"x") + b"--b--\r\n", "choose at least one file"),
        ],
        ids=["no form", "long header", "name in another encoding", "long field", "no files"],
    )
    async def test_a_form_that_cannot_be_taken_says_what_is_wrong(self, body: bytes, words: str) -> None:
        before = kept()
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        response = await send(files=None, content=body, headers=headers)
        assert (response.status_code, words in response.json()["detail"]) == (400, True), response.json()
        assert kept() == before
        assert await versions() == 0

    async def test_more_files_than_a_version_may_have_are_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(file_paths, "MAX_FILES", 1)
        before = kept()
        response = await send()
        assert (response.status_code, "are more than 1" in response.json()["detail"]) == (400, True)
        assert kept() == before

    async def test_a_browser_is_led_to_the_page_of_the_version(self) -> None:
        response = await send(headers={"Accept": "text/html"})
        assert (response.status_code, response.headers["location"]) == (303, "/models/digits/versions/1/")

    async def test_what_was_there_before_stays_when_an_upload_is_refused(self) -> None:
        known = await sync_to_async(blob)(b"somebody's own")
        answer = await send(files=[("files", ("a", b"somebody's own")), ("files", ("a", b"x"))])
        assert answer.status_code == 400
        assert blobs.exists(known)

    async def test_the_name_is_checked(self) -> None:
        answer = await send(address="/api/v1/models/-x/versions/upload")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "name")

    @pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b"), ("a/b", "a/b/c/d")])
    async def test_a_name_is_a_files_or_a_folders_and_not_both(self, paths: tuple[str, str]) -> None:
        before = kept()
        answer = await send(files=[("files", (path, path.encode())) for path in paths])
        assert (answer.status_code, "a file and a folder" in answer.json()["detail"]) == (400, True)
        assert kept() == before

    async def test_a_form_with_an_endless_boundary_is_refused(self) -> None:
        headers = {"Content-Type": f"multipart/form-data; boundary={'b' * 300}"}
        answer = await send(files=None, content=b"x", headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "files")

    async def test_no_form_is_refused(self) -> None:
        answer = await send(files=None, json={"files": []})
        assert "multipart/form-data" in answer.json()["detail"]

    async def test_a_viewer_may_not(self) -> None:
        assert (await send(await sync_to_async(make_viewer)())).status_code == 403
        assert not await sync_to_async(RegisteredModel.objects.exists)()

    async def test_nor_anybody_unknown(self) -> None:
        async with AsyncClient(transport=ASGITransport(application), base_url="http://testserver") as client:
            assert (await client.post(ADDRESS, files=FILES)).status_code == 401

    async def test_too_much_is_refused_before_it_is_read(self, settings: Any) -> None:
        settings.MAX_UPLOAD_BYTES = 1000
        assert (await send()).status_code == 413
