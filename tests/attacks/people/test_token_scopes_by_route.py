"""S22 and the row "Routes": what the scope of a token does not include is refused by every raw route and
every API view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from starlette.routing import BaseRoute, Mount, Route, Router

from tests.people import make_owner, make_workspace
from trainhub import asgi
from trainhub.asgi import application
from workspaces import tokens
from workspaces.authentication import token_calls
from workspaces.models import ApiToken
from workspaces.states import TokenScope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
WITHOUT_TOKENS = (
    "/api/v1/node/",
    "/api/2.0/mlflow-artifacts/mpu/parts/",
    "/ajax-api/2.0/mlflow-artifacts/mpu/parts/",
    "/tensorboard/",
    "/v2/",
)
"""Take no token of a person's at all, but a node's, the secret of an upload that somebody who may write has
begun, the ticket of a TensorBoard, which changes nothing, or the ticket of an order for its image."""
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
PUBLIC = ("/healthz", "/api/v1/node/", "/api/v1/device-login/", "/demo/", "/version", "/health", "/sdk")


def raw_routes(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in routes:
        if isinstance(route, Route):
            yield from (
                (method, prefix + route.path) for method in sorted((route.methods or set()) & METHODS)
            )
        elif isinstance(route, Mount) and isinstance(route.app, Router):
            yield from raw_routes(route.app.routes, prefix + route.path)


def api_views(patterns: Iterable[URLPattern | URLResolver], prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from api_views(pattern.url_patterns, path)
        elif path.startswith("api/v1/"):
            view = getattr(pattern.callback, "view_class", None)
            yield from ((method, "/" + path) for method in sorted(METHODS) if hasattr(view, method.lower()))


def filled(path: str) -> str:
    """An address of the pattern, with something in the place of each name."""
    for opening, closing in (("{", "}"), ("<", ">")):
        while opening in path:
            before, _, rest = path.partition(opening)
            name, _, after = rest.partition(closing)
            path = f"{before}{'1' if 'int' in name else 'a' * 64 if 'sha256' in name else 'x'}{after}"
    return path


def client(text: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(application)
    return httpx.AsyncClient(
        transport=transport, base_url="http://testserver", headers={"Authorization": f"Bearer {text}"}
    )


def issue(scope: TokenScope) -> str:
    return tokens.issue(make_owner(), make_workspace(), "x", scope=scope, lifetime=timedelta(days=1))[1]


@pytest.mark.parametrize(
    ("scope", "at_least"),
    [(TokenScope.READ, 60), (TokenScope.SUBMIT, 50), (TokenScope.REGISTER, 120), (TokenScope.LOG, 120)],
)
async def test_a_limited_token_is_refused_by_every_route_that_it_does_not_include(
    scope: TokenScope, at_least: int
) -> None:
    wrong, tried = [], 0
    async with client(await sync_to_async(issue)(scope)) as limited:
        for method, pattern in [*raw_routes(asgi.raw_routes), *api_views(get_resolver().url_patterns)]:
            path = filled(pattern)
            if token_calls.may_call(scope, method, path) or path.startswith(WITHOUT_TOKENS + PUBLIC):
                continue
            tried += 1
            answer = await limited.request(method, path, json={})
            # Calls that nobody answers to are refused as such.
            if answer.status_code not in (403, 405) or (
                answer.status_code == 403 and "This token may only" not in answer.text
            ):
                wrong.append((method, path, answer.status_code, answer.text[:120]))
    assert wrong == []
    assert tried > at_least


async def test_every_question_by_post_is_answered_to_it() -> None:
    async with client(await sync_to_async(issue)(TokenScope.READ)) as reader:
        for root in ("/api/2.0/mlflow", "/ajax-api/2.0/mlflow"):
            assert (
                await reader.post(f"{root}/runs/search", json={"experiment_ids": ["0"]})
            ).status_code == 200
            assert (
                await reader.post(f"{root}/logged-models/search", json={"experiment_ids": ["0"]})
            ).status_code == 200


async def test_what_was_known_of_a_token_a_moment_ago_makes_it_write_nothing() -> None:
    """The MLflow routes remember a token for some seconds; its scope is looked at each time all the same."""
    async with client(await sync_to_async(issue)(TokenScope.READ)) as reader:
        for _ in range(2):
            assert (
                await reader.post("/api/2.0/mlflow/runs/search", json={"experiment_ids": ["0"]})
            ).status_code == 200
            answer = await reader.post("/api/2.0/mlflow/experiments/create", json={"name": "evil"})
            assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")


async def test_an_expired_token_is_told_so_by_every_kind_of_route() -> None:
    text = await sync_to_async(issue)(TokenScope.WRITE)
    await sync_to_async(ApiToken.objects.update)(expires_at=timezone.now() - timedelta(minutes=1))
    async with client(text) as expired:
        for path in (
            "/api/v1/me/",
            f"/api/v1/snapshots/{'a' * 64}",
            "/api/2.0/mlflow/experiments/get?experiment_id=0",
        ):
            answer = await expired.get(path)
            assert answer.status_code == 401
            assert "This token expired on" in answer.text
            assert "WWW-Authenticate" in answer.headers
        large = await expired.post("/api/v1/runs/", content=b"x" * (2 * 2**20))
        assert large.status_code == 401
