"""Finding S23: the raw routes did not look at `Host`, so an answer could name whatever host a request had
named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator
from starlette.routing import Mount, Route

from trainhub.asgi import application, raw_routes

REFUSED = [
    "evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "testserver evil.example",
    "",
    "[::1",
    "testserver:a",
]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://testserver"
    ) as found:
        yield found


def paths() -> list[str]:
    """One address below each raw route of the hub."""
    return sorted(
        {
            route.path.replace("{", "").replace("}", "")
            for route in raw_routes
            if isinstance(route, Route | Mount)
        }
    )


@pytest.mark.parametrize("path", paths())
async def test_every_raw_route_refuses_a_foreign_host_first(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"Host": "evil.example"})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert answer.headers["content-type"] == "application/problem+json"
    assert "ALLOWED_HOSTS" in answer.json()["detail"]


@pytest.mark.parametrize("host", REFUSED)
async def test_hosts_that_only_look_like_ours_are_refused(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"Host": host})).status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize("host", ["testserver", "TestServer.", "127.0.0.1:8000", "localhost:1"])
async def test_our_own_names_are_taken_with_any_port(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"Host": host})).status_code == httpx.codes.OK


async def test_two_hosts_are_refused(client: httpx.AsyncClient) -> None:
    """Of the review's table "What was tried and held"."""
    answer = await client.get("/healthz", headers=[("Host", "testserver"), ("Host", "evil.example")])
    assert answer.status_code == httpx.codes.BAD_REQUEST


async def test_a_socket_of_a_foreign_host_is_refused() -> None:
    headers = [(b"origin", b"http://evil.example"), (b"host", b"evil.example")]
    communicator: Any = ApplicationCommunicator
    socket = communicator(
        application, {"type": "websocket", "path": "/ws/runs/", "query_string": b"", "headers": headers}
    )
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(5))["type"] == "websocket.close"
