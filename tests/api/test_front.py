from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from asgiref.testing import ApplicationCommunicator

from trainhub.asgi import application

pytestmark = pytest.mark.django_db(transaction=True)


async def asked(method: str, address: str) -> tuple[int, bytes]:
    """Status and content type of the whole hub's answer."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
        "http_version": "1.1",
    }
    app: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await app.send_input({"type": "http.request", "body": b"", "more_body": False})
    start = await app.receive_output(10)
    headers = {name.lower(): value for name, value in start["headers"]}
    return start["status"], headers[b"content-type"]


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("POST", "/api/v1/runs/x/logs/y", 405),
        ("GET", "/api/v1/runs/x/logs/y", 401),
        ("GET", "/api/v1/runs/x/logs/", 401),
        ("GET", "/api/v1/runs/", 401),
        ("GET", "/api/v1/nothing/", 404),
        ("POST", "/api/v1/runs", 404),
        ("PUT", "/api/v1/me/", 401),
        ("GET", "/api/v1/runs/x%00/", 404),
        ("GET", "/api/v1/runs/x%00/logs/y", 404),
        ("GET", "/api/v1/runs/?search=%00", 404),
    ],
)
async def test_every_door_of_the_api_refuses_with_a_problem(method: str, address: str, status: int) -> None:
    assert await asked(method, address) == (status, b"application/problem+json")
