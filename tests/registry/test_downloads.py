from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from httpx import ASGITransport, AsyncClient, Response

from registry.aliases import set_alias
from registry.models import ModelVersion
from registry.registration import register
from registry.scanning import versions
from tests.people import make_contributor, make_person, make_viewer, make_workspace, token_of
from tests.registry.builders import add_output, run_with
from tests.registry.downloads import verified
from trainhub.asgi import application
from workspaces.states import Role
from workspaces.stored_files import blobs

pytestmark = pytest.mark.django_db(transaction=True)
FILES = "/api/v1/models/digits/versions"


async def prepared() -> str:
    """One version with an odd file name, aliased; the token of a viewer."""

    def make() -> str:
        run = run_with("saved/w eights#1.pt", "saved/page.html")
        version = register(make_workspace(), "digits", run, "saved", make_contributor())
        set_alias(version.model, "production", 1, make_contributor())
        return token_of(make_viewer())

    return await sync_to_async(make)()


async def get(address: str, token: str | None, method: str = "GET", **headers: str) -> Response:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with AsyncClient(transport=ASGITransport(application), base_url="http://testserver") as client:
        return await client.request(method, f"{FILES}/{address}", headers=headers)


class TestDownload:
    @pytest.mark.parametrize("version", ["1", "production"])
    async def test_gives_the_bytes_by_number_or_alias(self, version: str) -> None:
        answer = await get(f"{version}/files/w%20eights%231.pt", await prepared())
        assert answer.status_code == 200
        assert answer.content == b"saved/w eights#1.pt"
        assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''w%20eights%231.pt"

    async def test_a_part_can_be_asked_for(self) -> None:
        answer = await get("1/files/page.html", await prepared(), Range="bytes=6-9")
        assert (answer.status_code, answer.content) == (206, b"page")
        assert answer.headers["content-range"] == "bytes 6-9/15"

    async def test_only_the_headers_can_be_asked_for(self) -> None:
        answer = await get("1/files/page.html", await prepared(), method="HEAD")
        assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "15", b"")

    async def test_no_browser_takes_it_for_a_page(self) -> None:
        headers = (await get("1/files/page.html", await prepared())).headers
        assert headers["content-type"] == "application/octet-stream"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("sandbox")

    @pytest.mark.parametrize(
        "address", ["1/files/nope", "2/files/page.html", "nope/files/page.html", "1/files/..%2fpage.html"]
    )
    async def test_what_is_not_there_is_not_found(self, address: str) -> None:
        assert (await get(address, await prepared())).status_code == 404

    async def test_without_a_valid_token_there_is_nothing(self) -> None:
        await prepared()
        assert (await get("1/files/page.html", None)).status_code == 401
        assert (await get("1/files/page.html", "th_wrong")).status_code == 401

    async def test_another_workspaces_model_is_not_there(self) -> None:
        await prepared()

        def of_speech() -> str:
            speech = make_workspace("speech")
            return token_of(make_person("sue", Role.OWNER, speech), speech)

        assert (await get("1/files/page.html", await sync_to_async(of_speech)())).status_code == 404

    async def test_bytes_that_are_missing_are_said_to_be_missing(self) -> None:
        token = await prepared()

        def lose() -> None:
            blobs.path(add_output(run_with(number=42), "saved/page.html").sha256).unlink()

        await sync_to_async(lose)()
        answer = await get("1/files/page.html", token)
        assert answer.status_code == 404
        assert "backup" in answer.json()["detail"]


class TestWhole:
    async def test_a_zip_with_its_certificate_that_verifies(self, tmp_path: Path) -> None:
        token = await prepared()
        answer = await get("production/zip", token)
        assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''digits-1.zip"
        assert int(answer.headers["content-length"]) == len(answer.content)
        (tmp_path / "got.zip").write_bytes(answer.content)
        assert verified(tmp_path / "got.zip").status == 0

    async def test_goes_on_where_it_broke_off(self) -> None:
        token = await prepared()
        whole = (await get("1/zip", token)).content
        rest = await get("1/zip", token, Range="bytes=100-")
        assert (rest.status_code, rest.content) == (206, whole[100:])

    async def test_the_papers_can_be_had_alone(self) -> None:
        token = await prepared()
        certificate, signature = await get("1/certificate", token), await get("1/signature", token)
        assert certificate.json()["model"]["number"] == 1
        assert signature.json()["fingerprint"] == certificate.json()["issuer"]["key"]

    async def test_the_verifier_trusts_the_keys_of_this_hub(self, tmp_path: Path) -> None:
        token = await prepared()
        (tmp_path / "got.zip").write_bytes((await get("1/zip", token)).content)
        script = await get("../../../verifier/trainhub_verify.py", token)
        (tmp_path / "trainhub_verify.py").write_bytes(script.content)
        done = subprocess.run(
            [sys.executable, "-I", "trainhub_verify.py", "got.zip"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.splitlines()[-1][:27]) == (0, "VERIFIED: digits version 1:")

    @pytest.mark.parametrize("address", ["1/zip", "1/certificate", "1/signature", "1/files/page.html"])
    async def test_nobody_unknown_gets_any_of_it(self, address: str) -> None:
        await prepared()
        assert (await get(address, None)).status_code == 401

    async def test_what_the_scanner_says_comes_with_it(self) -> None:
        token = await prepared()
        assert (await get("1/zip", token)).headers["x-trainhub-scan"] == "pending"
        await sync_to_async(lambda: versions.scan(ModelVersion.objects.get().pk))()
        assert (await get("1/files/page.html", token)).headers["x-trainhub-scan"] == "contains_code"
        assert (await get("1/zip", token)).headers["x-trainhub-scan"] == "not_scanned"
