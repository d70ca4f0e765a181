"""The doors for machines that are no node yet, as a program meets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from clusters.enrolment import join
from clusters.enrolment.node_wheel import NODE_WHEEL
from clusters.models import Node
from tests.jobs.raw import bearing, enrolled, opened
from trainhub import certificates
from workspaces.authentication import login_throttle

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
ENROL = "/api/v1/node/enrol/"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with opened() as found:
        yield found


@sync_to_async
def invited(name: str = "") -> str:
    return join.invite("gang", name, None)[1]


class TestEnrol:
    async def test_trades_a_join_token_for_one_that_the_other_doors_take(
        self, client: httpx.AsyncClient
    ) -> None:
        answer = await client.post(
            ENROL, json={"token": await invited("alpha"), "name": "", "hostname": "box", "replace": False}
        )
        told = answer.json()
        assert (answer.status_code, told["name"], told["cluster"], told["ca"]) == (200, "alpha", "gang", "")
        config = await client.get("/api/v1/node/config/", headers=bearing(told["token"]))
        assert config.json()["queue"] == "node.alpha.wake"

    async def test_a_token_is_gone_once_used(self, client: httpx.AsyncClient) -> None:
        text = await invited()
        assert (await client.post(ENROL, json={"token": text, "name": "alpha"})).is_success
        again = await client.post(ENROL, json={"token": text, "name": "beta"})
        assert again.status_code == 410
        assert again.headers["content-type"] == "application/problem+json"
        assert again.json()["errors"][0]["field"] == "token"

    async def test_a_name_that_reports_is_a_conflict_that_names_the_remedy(
        self, client: httpx.AsyncClient
    ) -> None:
        await enrolled("alpha")
        answer = await client.post(ENROL, json={"token": await invited("alpha")})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (409, "name")
        assert "--name" in answer.json()["detail"]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (b"", ""),
            (b"[]", ""),
            (b"{\x00", ""),
            (b'{"token": 5}', "token"),
            (b'{"token": "t", "name": null}', "name"),
            (b'{"token": "t", "hostname": "' + b"x" * 300 + b'"}', "hostname"),
            (b'{"token": "t", "replace": "yes"}', "replace"),
            (b'{"token": "t", "name": "a\\u0000b"}', "name"),
        ],
    )
    async def test_what_is_no_request_is_refused_by_name(
        self, client: httpx.AsyncClient, body: bytes, field: str
    ) -> None:
        answer = await client.post(ENROL, content=body)
        assert answer.status_code == 400
        assert [error["field"] for error in answer.json().get("errors", [])] == ([field] if field else [])

    async def test_a_large_body_is_not_read(self, client: httpx.AsyncClient) -> None:
        assert (await client.post(ENROL, content=b"x" * 20_000)).status_code == 413

    async def test_guessing_is_slowed_down(self, client: httpx.AsyncClient) -> None:
        for _ in range(login_throttle.FREE_ATTEMPTS):
            assert (await client.post(ENROL, json={"token": "thj_guess"})).status_code == 410
        answer = await client.post(ENROL, json={"token": "thj_guess"})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0

    async def test_a_good_token_is_never_slowed_down_by_others_guesses(
        self, client: httpx.AsyncClient
    ) -> None:
        for _ in range(login_throttle.FREE_ATTEMPTS + 1):
            await client.post(ENROL, json={"token": "thj_guess"})
        assert (await client.post(ENROL, json={"token": await invited("alpha")})).status_code == 200

    async def test_of_two_machines_with_one_token_one_joins(self, client: httpx.AsyncClient) -> None:
        text = await invited()
        answers = [await client.post(ENROL, json={"token": text, "name": name}) for name in ("alpha", "beta")]
        assert sorted(answer.status_code for answer in answers) == [200, 410]
        assert await sync_to_async(Node.objects.count)() == 1


class TestAuthority:
    async def test_is_given_to_anybody(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path
    ) -> None:
        await sync_to_async(certificates.ensure)(tmp_path, ["localhost"])
        settings.HUB_CA = tmp_path / "ca.pem"
        answer = await client.get("/api/v1/node/ca/")
        assert answer.text == settings.HUB_CA.read_text()
        joined = await client.post(ENROL, json={"token": await invited("alpha")})
        assert joined.json()["ca"] == answer.text

    async def test_is_not_there_where_others_vouch_for_the_hub(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/api/v1/node/ca/")).status_code == 404


class TestPackage:
    @pytest.mark.parametrize("last", ["", "trainhub_node-9.9-py3-none-any.whl"])
    async def test_comes_by_its_own_name_and_without_one(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path, last: str
    ) -> None:
        settings.NODE_WHEELS = tmp_path
        _write_package(tmp_path / NODE_WHEEL.sources_digest())
        answer = await client.get(f"/api/v1/node/wheel/{last}")
        assert (
            answer.content,
            'trainhub_node-9.9-py3-none-any.whl"' in answer.headers["content-disposition"],
        ) == (b"PK", True)

    async def test_of_another_version_is_not_there(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path
    ) -> None:
        settings.NODE_WHEELS = tmp_path
        _write_package(tmp_path / NODE_WHEEL.sources_digest())
        answer = await client.get("/api/v1/node/wheel/trainhub_node-1.0-py3-none-any.whl")
        assert (answer.status_code, "9.9" in answer.json()["detail"]) == (404, True)

    async def test_of_other_sources_is_not_given(
        self, client: httpx.AsyncClient, settings: Settings, tmp_path: Path
    ) -> None:
        settings.NODE_WHEELS = tmp_path
        _write_package(tmp_path / "of-an-older-hub")
        answer = await client.get("/api/v1/node/wheel/trainhub_node-9.9-py3-none-any.whl")
        assert answer.status_code == 404
        assert [folder.name for folder in tmp_path.iterdir()] == [NODE_WHEEL.sources_digest()]


def _write_package(folder: Path) -> None:
    folder.mkdir()
    (folder / "trainhub_node-9.9-py3-none-any.whl").write_bytes(b"PK")
