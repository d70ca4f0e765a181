"""What browsers keep, what they ask for again, and what is compressed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import brotli
import httpx
import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.templatetags.static import static
from django.test import Client

from tests.people import client_of, make_viewer
from trainhub import static_files
from trainhub.asgi import application
from trainhub.static_files import KEEP, version
from trainhub.web.compression import CompressedText
from trainhub.web.encodings import accepted_encoding
from workspaces.http.secret_pages import NEVER_STORED

IMPORT = re.compile(
    r"""(?:^import\s+|^(?:import|export)\b[^;]*?\sfrom\s+|\bimport\()["']([^"']+)""", re.MULTILINE
)
OWN = Path(settings.BASE_DIR) / "static"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application)
    # httpx would ask for compression by itself, and undo it.
    async with httpx.AsyncClient(
        transport=transport, base_url="http://testserver", headers={"Accept-Encoding": "identity"}
    ) as made:
        yield made


async def raw(client: httpx.AsyncClient, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Returns an answer with its body as it was sent."""
    async with client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


class TestVersions:
    async def test_browsers_keep_what_a_page_names(self, client: httpx.AsyncClient) -> None:
        address = static("js/frame.js")
        assert address == f"/static/v-{version()}/js/frame.js"
        answer = await client.get(address)
        assert answer.headers["cache-control"] == KEEP
        assert answer.content == (OWN / "js" / "frame.js").read_bytes()

    @pytest.mark.parametrize("folder", ["", "v-0123456789abcdef/"])
    async def test_another_version_is_served_but_not_kept(
        self, client: httpx.AsyncClient, folder: str
    ) -> None:
        answer = await client.get(f"/static/{folder}js/frame.js")
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
        etag = answer.headers["etag"]
        again = await client.get(f"/static/{folder}js/frame.js", headers={"If-None-Match": etag})
        assert again.status_code == httpx.codes.NOT_MODIFIED

    def test_a_changed_file_is_a_new_version(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(static_files, "_folders", lambda: [str(tmp_path)])
        versions = set()
        for name, text in (("a.js", "1"), ("a.js", "2"), ("b.js", "2")):
            (tmp_path / name).write_text(text)
            version.cache_clear()
            versions.add(version())
        monkeypatch.undo()
        version.cache_clear()
        assert len(versions) == 3

    def test_modules_import_each_other_within_their_version(self) -> None:
        for path in (OWN / "js").rglob("*.js"):
            for address in IMPORT.findall(path.read_text()):
                assert address.startswith("."), (path, address)


class TestCompression:
    @pytest.mark.parametrize(
        ("accepted", "expected"),
        [
            ("gzip, deflate, br", "br"),
            ("br;q=0, gzip;q=0.5", "gzip"),
            ("GZIP", "gzip"),
            ("br;q=0", ""),
            ("identity", ""),
            ("", ""),
        ],
    )
    def test_the_best_encoding_that_is_accepted(self, accepted: str, expected: str) -> None:
        assert accepted_encoding(accepted) == expected

    @pytest.mark.parametrize("path", ["js/frame.js", "bundles/frame.css", "bundles/early.js", "icon.svg"])
    async def test_text_arrives_unchanged_in_eachaccepted_encoding(
        self, client: httpx.AsyncClient, path: str
    ) -> None:
        plain = (await client.get(static(path))).content
        for encoding, read in (("br", brotli.decompress), ("gzip", gzip.decompress)):
            answer, body = await raw(client, static(path), **{"Accept-Encoding": encoding})
            assert answer.headers["content-encoding"] == encoding
            assert answer.headers["vary"] == "Accept-Encoding"
            assert read(body) == plain
            again = await client.get(
                static(path), headers={"Accept-Encoding": encoding, "If-None-Match": answer.headers["etag"]}
            )
            assert again.status_code == httpx.codes.NOT_MODIFIED

    async def test_a_bundle_is_its_parts(self, client: httpx.AsyncClient) -> None:
        parts = [
            (await client.get(static(part))).content for part in static_files.BUNDLES["bundles/frame.css"]
        ]
        assert (await client.get(static("bundles/frame.css"))).content == b"\n".join(parts)

    async def test_a_range_is_one_of_the_file_itself(self, client: httpx.AsyncClient) -> None:
        headers = {"Accept-Encoding": "br", "Range": "bytes=2-5"}
        answer = await client.get(static("js/frame.js"), headers=headers)
        assert answer.status_code == httpx.codes.PARTIAL_CONTENT
        assert answer.content == (OWN / "js" / "frame.js").read_bytes()[2:6]

    @pytest.mark.parametrize(
        "path", ["bundles/none.css", "bundles/../../manage.py", "v-1/v-2/js/app.js", "js"]
    )
    async def test_nothing_else_is_there(self, client: httpx.AsyncClient, path: str) -> None:
        answer = await client.get(f"/static/{path}", headers={"Accept-Encoding": "br"})
        assert answer.status_code == httpx.codes.NOT_FOUND

    @pytest.mark.django_db
    def test_a_page_is_compressed_for_who_accepts_it(self) -> None:
        person: Client = client_of(make_viewer())
        page = person.get("/runs/", headers={"Accept-Encoding": "gzip"})
        assert page.status_code == httpx.codes.OK, page.headers
        assert page.headers["Content-Encoding"] == "gzip"
        assert b"</html>" in gzip.decompress(page.content)
        assert "Content-Encoding" not in person.get("/runs/").headers

    @pytest.mark.parametrize(
        ("accepted", "read"), [("gzip", gzip.decompress), ("gzip, br", brotli.decompress)]
    )
    def test_data_are_the_same_after_it(self, accepted: str, read: Callable[[bytes], bytes]) -> None:
        request, numbers = HttpRequest(), json.dumps([n / 7 for n in range(5000)]).encode()
        request.META["HTTP_ACCEPT_ENCODING"] = accepted
        response = HttpResponse(numbers, headers={"Content-Type": "application/json", "ETag": '"one"'})
        CompressedText(lambda _: response).process_response(request, response)
        assert response.headers["Content-Encoding"] == accepted.rpartition(" ")[2]
        assert read(response.content) == numbers
        assert response.headers["Content-Length"] == str(len(response.content))
        assert len(response.content) < len(numbers) / 2
        assert response.headers["ETag"] == 'W/"one"'
        assert response.headers["Vary"] == "Accept-Encoding"

    @pytest.mark.parametrize(
        ("headers", "is_compressed"),
        [
            ({"Content-Type": "text/html; charset=utf-8"}, True),
            ({"Content-Type": "application/json"}, True),
            ({"Content-Type": "text/html", "Cache-Control": NEVER_STORED}, False),
            ({"Content-Type": "application/zip"}, False),
            ({"Content-Type": "text/plain", "Content-Disposition": "attachment"}, False),
        ],
    )
    def test_only_pages_and_data_without_secrets_are(
        self, headers: dict[str, str], is_compressed: bool
    ) -> None:
        request = HttpRequest()
        request.META["HTTP_ACCEPT_ENCODING"] = "gzip"
        response = HttpResponse(b"word " * 1000, headers=headers)
        CompressedText(lambda _: response).process_response(request, response)
        assert response.has_header("Content-Encoding") is is_compressed

    def test_what_streams_is_not_held_back(self) -> None:
        request = HttpRequest()
        request.META["HTTP_ACCEPT_ENCODING"] = "gzip"
        stream = StreamingHttpResponse(iter([b"line\n" * 100]), content_type="text/plain")
        CompressedText(lambda _: stream).process_response(request, stream)
        assert not stream.has_header("Content-Encoding")
