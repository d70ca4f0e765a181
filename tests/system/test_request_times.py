"""How long requests take, by route: of raw routes and of Django's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest

from trainhub.asgi import application
from trainhub.web.request_times import RequestTimes
from workspaces.hub_metrics.instruments import REQUEST_SECONDS


def answers(method: str, route: str, status: str) -> int:
    return int(
        sum(
            sample.value
            for metric in REQUEST_SECONDS.collect()
            for sample in metric.samples
            if sample.name.endswith("_count")
            and sample.labels == {"method": method, "route": route, "status": status}
        )
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("GET", "/healthz", "/healthz", "2xx"),
        ("GET", "/runs/77/", "/runs/<int:number>/", "3xx"),
        ("GET", "/api/v1/runs/abc/", "/api/v1/runs/<str:run>/", "4xx"),
        ("POST", "/api/v1/node/report/", "/api/v1/node/report/", "4xx"),
        ("GET", "/nothing/like/this", "(unknown)", "4xx"),
        ("PURGE", "/healthz", "/healthz", "4xx"),
    ],
)
async def test_each_is_counted_by_its_route_and_not_by_its_path(
    method: str, path: str, route: str, status: str
) -> None:
    label = "other" if method == "PURGE" else method
    before = answers(label, route, status)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        await client.request(method, path)
    assert answers(label, route, status) == before + 1


def scope() -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": "/", "headers": []}


async def test_a_request_whose_client_has_gone_is_no_fault_of_the_hub() -> None:
    before = answers("GET", "(unknown)", "canceled")

    async def app(*_: object) -> None:
        await asyncio.sleep(30)

    task = asyncio.create_task(RequestTimes(app)(scope(), None, None))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert answers("GET", "(unknown)", "canceled") == before + 1


async def test_one_that_django_leaves_without_an_answer_is_none_either() -> None:
    before = answers("GET", "/slow/", "canceled")
    messages = iter(({"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}))

    async def view(_: HttpRequest) -> None:
        await asyncio.sleep(30)

    async def receive() -> dict[str, Any]:
        return dict(next(messages))

    async def app(inner: Any, receive: Any, send: Any) -> None:
        inner["route"] = SimpleNamespace(path="/slow/")
        handler = ASGIHandler()
        handler.get_response_async = view  # type: ignore[assignment]
        await handler(inner, receive, send)

    async def send(_: object) -> None:
        raise AssertionError("nobody is there for an answer")

    await RequestTimes(app)({**scope(), "query_string": b""}, receive, send)
    assert answers("GET", "/slow/", "canceled") == before + 1


async def test_one_that_raises_is() -> None:
    before = answers("GET", "(unknown)", "5xx")

    async def app(*_: object) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await RequestTimes(app)(scope(), None, None)  # type: ignore[arg-type]
    assert answers("GET", "(unknown)", "5xx") == before + 1
