"""The page /sdk/ and the files below it, as anybody gets them."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings
from starlette.applications import Starlette

from trainhub import certificates
from trainhub.sdk_downloads import wheels
from trainhub.sdk_downloads.routes import routes
from trainhub.sdk_downloads.wheels import REQUIREMENTS, SDK_WHEEL, missing_requirements
from workspaces.own_wheels import own_wheel

NAME = "trainhub-9.9-py3-none-any.whl"
CONTENT = b"PK of ours"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OF_A_REQUIREMENT = "click-8.1.8-py3-none-any.whl"


@pytest.fixture(autouse=True)
def _wheels(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub has built its own wheel, and has those of its requirements."""
    settings.SDK_WHEELS = tmp_path / "own"
    folder = settings.SDK_WHEELS / SDK_WHEEL.sources_digest()
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(CONTENT)
    assert missing_requirements() == (), "make sdk-wheels brings them"
    requirements = Path(shutil.copytree(wheels.REQUIREMENT_WHEELS, tmp_path / "requirements"))
    monkeypatch.setattr(wheels, "REQUIREMENT_WHEELS", requirements)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://hub:8000") as opened:
        yield opened


class TestPage:
    async def test_names_every_wheel_with_the_hash_of_its_bytes(self, client: httpx.AsyncClient) -> None:
        page = await client.get("/sdk/")
        assert page.headers["content-type"].startswith("text/html")
        links = re.findall(r'href="(/sdk/[^"#]+\.whl)#sha256=([0-9a-f]{64})"', page.text)
        pins = re.findall(r"^([a-z-]+)==", REQUIREMENTS.read_text(), re.MULTILINE)
        assert (f"/sdk/{NAME}", SHA256) in links
        assert len(links) == len(pins) + 1
        for address, digest in links:
            assert hashlib.sha256((await client.get(address)).content).hexdigest() == digest

    async def test_is_found_without_its_last_slash(self, client: httpx.AsyncClient) -> None:
        answer = await client.get("/sdk")
        assert (answer.status_code, answer.headers["location"]) == (308, "/sdk/")

    async def test_says_which_packages_are_missing_and_how_they_come(
        self, client: httpx.AsyncClient, settings: Settings
    ) -> None:
        (wheels.REQUIREMENT_WHEELS / OF_A_REQUIREMENT).unlink()
        page = (await client.get("/sdk/")).text
        assert "This hub lacks click" in page
        assert "make sdk-wheels" in page
        assert NAME in page

    async def test_says_that_its_own_wheel_could_not_be_built(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.SDK_WHEELS = tmp_path / "nothing"
        monkeypatch.setattr(own_wheel, "BUILDER", tmp_path / "no-builder")
        page = (await client.get("/sdk/")).text
        assert "could not be built" in page
        assert OF_A_REQUIREMENT in page


class TestWheel:
    async def test_has_a_strong_tag_and_is_asked_for_again(self, client: httpx.AsyncClient) -> None:
        answer = await client.get(f"/sdk/{NAME}")
        assert (answer.content, answer.headers["etag"]) == (CONTENT, f'"{SHA256}"')
        assert answer.headers["cache-control"] == "private, no-cache"
        again = await client.get(f"/sdk/{NAME}", headers={"If-None-Match": f'"{SHA256}"'})
        assert again.status_code == 304

    @pytest.mark.parametrize(
        "name",
        [
            "none.whl",
            "trainhub-1.0-py3-none-any.whl",
            "..%2fsettings.py",
            "..%2f..%2frequirements%2fclick-8.1.8-py3-none-any.whl",
            "%2fetc%2fpasswd",
            f"{NAME}%00",
            f"{NAME}%20",
        ],
    )
    async def test_of_another_name_is_not_there(self, client: httpx.AsyncClient, name: str) -> None:
        assert (await client.get(f"/sdk/{name}")).status_code == 404

    @pytest.mark.parametrize("content", [b"", b"PK of others"])
    async def test_with_other_bytes_than_the_list_names_is_not_served(
        self, client: httpx.AsyncClient, settings: Settings, content: bytes
    ) -> None:
        (wheels.REQUIREMENT_WHEELS / OF_A_REQUIREMENT).write_bytes(content)
        assert (await client.get(f"/sdk/{OF_A_REQUIREMENT}")).status_code == 404

    async def test_that_the_list_does_not_name_is_not_served(
        self, client: httpx.AsyncClient, settings: Settings
    ) -> None:
        (wheels.REQUIREMENT_WHEELS / "extra-1.0-py3-none-any.whl").write_bytes(b"PK")
        (wheels.REQUIREMENT_WHEELS / "link-1.0-py3-none-any.whl").symlink_to("/etc/passwd")
        for name in ("extra-1.0-py3-none-any.whl", "link-1.0-py3-none-any.whl"):
            assert (await client.get(f"/sdk/{name}")).status_code == 404
            assert name not in (await client.get("/sdk/")).text


class TestAuthority:
    async def test_is_given_to_anybody(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path
    ) -> None:
        await sync_to_async(certificates.ensure)(tmp_path / "tls", ["localhost"])
        settings.HUB_CA = tmp_path / "tls" / "ca.pem"
        assert (await client.get("/sdk/ca.pem")).content == settings.HUB_CA.read_bytes()

    async def test_is_not_there_where_others_vouch_for_the_hub(
        self, client: httpx.AsyncClient, settings: Settings
    ) -> None:
        settings.HUB_CA = None
        answer = await client.get("/sdk/ca.pem")
        assert (answer.status_code, "no authority" in answer.json()["detail"]) == (404, True)
