"""The front door: which part answers what, and what is refused before anything is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator
from django.templatetags.static import static

from trainhub.asgi import application
from trainhub.views import operations


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application), base_url="http://testserver"
    ) as found:
        yield found


class TestOpenDoors:
    async def test_health_needs_no_login(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/healthz")).json() == {"status": "ok"}

    @pytest.mark.parametrize(
        "path", ["css/tokens.css", "bootstrap/css/bootstrap.min.css", "django_htmx/htmx-2.min.js"]
    )
    async def test_static_files_come_from_project_and_packages(
        self, client: httpx.AsyncClient, path: str
    ) -> None:
        answer = await client.get(f"/static/{path}")
        assert answer.status_code == httpx.codes.OK
        again = await client.get(f"/static/{path}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == httpx.codes.NOT_MODIFIED

    @pytest.mark.parametrize(
        "path", ["vendor/plotly-strict-4.1.1.min.js", "vendor/plotly-cartesian-4.1.1.min.js"]
    )
    async def test_what_others_wrote_is_kept_by_browsers(self, client: httpx.AsyncClient, path: str) -> None:
        answer = await client.get(static(path))
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]

    @pytest.mark.parametrize("path", ["../trainhub/settings.py", "%2e%2e/manage.py", "none.css"])
    async def test_nothing_else_is_a_static_file(self, client: httpx.AsyncClient, path: str) -> None:
        assert (await client.get(f"/static/{path}")).status_code == httpx.codes.NOT_FOUND


@pytest.mark.django_db(transaction=True)
class TestClosedDoors:
    @pytest.mark.parametrize("path", ["/", "/runs/", "/clusters/", "/models/", "/settings/", "/api/"])
    async def test_pages_ask_to_sign_in(self, client: httpx.AsyncClient, path: str) -> None:
        answer = await client.get(path)
        assert answer.status_code == httpx.codes.FOUND
        assert answer.headers["location"].startswith("/sign-in/")

    @pytest.mark.parametrize(
        "path", ["/api/v1/schema/", "/api/v1/node/config/", f"/api/v1/snapshots/{'0' * 64}"]
    )
    async def test_the_api_asks_for_a_token(self, client: httpx.AsyncClient, path: str) -> None:
        assert (await client.get(path)).status_code == httpx.codes.UNAUTHORIZED

    async def test_a_foreign_host_name_is_refused(self, client: httpx.AsyncClient) -> None:
        assert (
            await client.get("/sign-in/", headers={"Host": "evil.example"})
        ).status_code == httpx.codes.BAD_REQUEST

    @pytest.mark.parametrize("path", ["/ws/runs/", "/ws/nodes/", "/ws/elsewhere/"])
    async def test_sockets_ask_who_it_is(self, path: str) -> None:
        headers = [(b"origin", b"http://testserver"), (b"host", b"testserver")]
        scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers}
        communicator: Any = ApplicationCommunicator
        socket = communicator(application, scope)
        await socket.send_input({"type": "websocket.connect"})
        assert (await socket.receive_output(5))["type"] == "websocket.close"


class TestApiPage:
    def test_lists_every_operation_of_the_schema_and_the_byte_routes(self) -> None:
        found = {(operation.method, operation.path) for operation in operations()}
        assert {
            ("POST", "/api/v1/runs/"),
            ("POST", "/api/v1/runs/preview/"),
            ("POST", "/api/v1/snapshots/"),
        } <= found
        assert {("GET", "/api/v1/runs/{run}/logs/{name}"), ("PUT", "/api/v1/uploads/{sha256}")} <= found
        assert not [path for _, path in found if "/node/" in path]
        assert all(operation.summary for operation in operations())
