from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import msgpack
import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from clusters.enrolment import node_tokens
from jobs.node_api.node_routes import unhurried
from tests.jobs.builders import alive
from tests.jobs.raw import LOG, claimed, contributor, enrolled, packed, placed
from trainhub_launch.report import Ack, AttemptFact, LogChunk
from trainhub_launch.states import Phase

# The routes work in threads of their own, which only see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


class TestUnhurried:
    @pytest.mark.parametrize(
        ("interval_s", "waiting", "expected"),
        [(1.0, 0, 1.0), (1.0, 8, 2.0), (1.0, 200, 5.0), (5.0, 200, 5.0), (8.0, 0, 8.0)],
    )
    def test_a_busy_hub_asks_for_fewer_signs_of_life_within_its_patience(
        self, settings: Settings, interval_s: float, waiting: int, expected: float
    ) -> None:
        settings.NODE_UNREACHABLE_AFTER = 10
        assert unhurried(interval_s, waiting) == expected


class TestDoors:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/api/v1/node/claim/"),
            ("POST", "/api/v1/node/report/"),
            ("GET", "/api/v1/node/config/"),
            ("GET", f"/api/v1/snapshots/{'0' * 64}"),
            ("HEAD", f"/api/v1/uploads/{'0' * 64}"),
            ("PUT", f"/api/v1/uploads/{'0' * 64}"),
            ("GET", f"/api/v1/runs/{'0' * 32}/logs/{LOG}"),
            ("GET", f"/api/v1/runs/{'0' * 32}/outputs/model.pt"),
        ],
    )
    async def test_nobody_gets_anything(self, client: httpx.AsyncClient, method: str, path: str) -> None:
        for headers in ({}, {"Authorization": "Bearer th_wrong"}):
            answer = await client.request(method, path, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["content-type"] == "application/problem+json"

    async def test_a_body_is_not_read_before_the_token_is_known(self, client: httpx.AsyncClient) -> None:
        async def endless() -> AsyncIterator[bytes]:
            raise AssertionError("the body was read")
            yield b""

        answer = await client.post("/api/v1/node/report/", content=endless())
        assert answer.status_code == 401

    async def test_a_revoked_node_is_nobody(self, client: httpx.AsyncClient) -> None:
        alpha, headers = await enrolled()
        await sync_to_async(node_tokens.revoke_node)(alpha)
        assert (await client.get("/api/v1/node/config/", headers=headers)).status_code == 401

    async def test_a_person_is_no_node(self, client: httpx.AsyncClient) -> None:
        _, headers = await contributor()
        assert (
            await client.post("/api/v1/node/report/", headers=headers, content=packed())
        ).status_code == 401


class TestNode:
    async def test_learns_how_to_listen(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        told = (await client.get("/api/v1/node/config/", headers=headers)).json()
        assert (told["node"], told["cluster"], told["queue"]) == ("alpha", "local", "node.alpha.wake")

    async def test_claims_with_the_address_it_knows_the_hub_by(self, client: httpx.AsyncClient) -> None:
        _, headers = await enrolled()
        who, _ = await contributor()
        run = await placed(who)
        claim = {"run": run.pk, "attempt": 1, "nonce": "a" * 32, "ports": [6105]}
        answer = await client.post("/api/v1/node/claim/", headers=headers, json=claim)
        assert answer.status_code == 200
        assert answer.json()["values"]["launch:url"] == "http://hub:8000"
        again = await client.post("/api/v1/node/claim/", headers=headers, json={**claim, "nonce": "b" * 32})
        assert (again.status_code, again.json()["detail"]) == (409, "This part has been claimed before.")

    async def test_behind_a_proxy_the_address_is_the_public_one(
        self, client: httpx.AsyncClient, settings: Settings
    ) -> None:
        settings.PUBLIC_URL = "https://hub:8000"
        _, headers = await enrolled()
        who, _ = await contributor()
        claim = {"run": (await placed(who)).pk, "attempt": 1, "nonce": "a" * 32, "ports": [6105]}
        answer = await client.post("/api/v1/node/claim/", headers=headers, json=claim)
        assert answer.json()["values"]["launch:url"] == "https://hub:8000"

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"{}", b'{"run": 1}', b'{"run":"x","attempt":"y","nonce":"z"}']
    )
    async def test_a_claim_that_is_none_is_refused(self, client: httpx.AsyncClient, body: bytes) -> None:
        _, headers = await enrolled()
        assert (await client.post("/api/v1/node/claim/", headers=headers, content=body)).status_code == 400

    async def test_reports_and_is_answered(self, client: httpx.AsyncClient) -> None:
        alpha, headers = await enrolled()
        who, _ = await contributor()
        run = await claimed(who, alpha)
        fact = AttemptFact(run.pk, 1, Phase.RUNNING, phase_at={"running": 1.0}, members=(alive(0),))
        answer = await client.post(
            "/api/v1/node/report/",
            headers=headers,
            content=packed(fact, logs=(LogChunk(run.pk, 1, LOG, 0, b"one\n"),)),
        )
        ack = Ack.from_wire(msgpack.unpackb(answer.content))
        assert ack.offsets == ((run.pk, 1, LOG, 4),)
        assert ack.interval_s == 1.0

    @pytest.mark.parametrize("body", [b"", b"\xc1", b"\x80", msgpack.packb({"version": 99})])
    async def test_what_is_no_report_is_refused(self, client: httpx.AsyncClient, body: bytes) -> None:
        _, headers = await enrolled()
        assert (await client.post("/api/v1/node/report/", headers=headers, content=body)).status_code == 400

    async def test_a_report_that_is_too_large_is_refused(
        self, client: httpx.AsyncClient, settings: Settings
    ) -> None:
        _, headers = await enrolled()
        settings.MAX_REPORT_BYTES = 10
        assert (
            await client.post("/api/v1/node/report/", headers=headers, content=packed())
        ).status_code == 413
