from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from workspaces.http.problems import problem_responses
from workspaces.http.requests import read_body


@problem_responses
async def echo(request: Request) -> Response:
    return Response(await read_body(request, 10))


async def send(*pieces: bytes, declared: bool) -> httpx.Response:
    """Sends the pieces, with their length in a header if it is `declared`."""

    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    app = Starlette(routes=[Route("/", echo, methods=["POST"])])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hub") as client:
        return await client.post("/", content=b"".join(pieces) if declared else body())


class TestBody:
    @pytest.mark.parametrize("declared", [True, False])
    async def test_is_read_up_to_its_limit(self, declared: bool) -> None:
        response = await send(b"01234", b"56789", declared=declared)
        assert (response.status_code, response.content) == (200, b"0123456789")

    @pytest.mark.parametrize("declared", [True, False])
    async def test_beyond_its_limit_is_refused_and_the_connection_closed(self, declared: bool) -> None:
        response = await send(b"01234", b"56789", b"x", declared=declared)
        assert (response.status_code, response.headers["connection"]) == (413, "close")
        assert response.json()["detail"] == "At most 10 bytes are accepted at once."
