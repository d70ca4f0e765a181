"""Routes whose requests one server answers for each key, whichever server they reach.

A request that another server must answer travels there whole, over the link; so does its answer. Where that
server does not answer, this one does: it need not know what the other has done already, because everything on
such a route may be done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.servers.links import LinkBroken, links
from workspaces.servers.ring import ring

CALL = "http"
Endpoint = Callable[[Request], Awaitable[Response]]
# Of the ASGI scope, what endpoints read.
_COPIED = ("method", "scheme", "path", "raw_path", "query_string", "root_path", "http_version")


@dataclass(frozen=True)
class OwnedRoute:
    """An endpoint with the `key` of a request, the limit of its body, and what `admit` checks before the body
    is read: it raises Problem, as the endpoint itself would."""

    endpoint: Endpoint
    key: Callable[[Request], str]
    admit: Callable[[Request], Awaitable[None]]
    max_body_bytes: int


_routes: dict[str, OwnedRoute] = {}


def at_owner(name: str, route: OwnedRoute) -> Endpoint:
    """Returns an endpoint that has the owner of the request's key answer it. `name`: the same on every
    server."""
    _routes[name] = route

    @problem_responses
    async def answer(request: Request) -> Response:
        if ring.is_alone:
            return await route.endpoint(request)
        if not ring.is_current:
            raise Problem(503, "Not yet", "This server cannot say that it lives.", Retry_After="1")
        owner = ring.owner(route.key(request))
        if owner is None:
            return await route.endpoint(request)
        await route.admit(request)
        body = await read_body(request, route.max_body_bytes)
        try:
            link = await links.to(owner)
            forwarded = await link.request(CALL, [name, _head(request), body])
        except LinkBroken:
            forwarded = None
        if forwarded is None:
            return await route.endpoint(_request(dict(request.scope), body))
        return _response(forwarded)

    return answer


async def answer_forwarded(payload: Any) -> list[Any]:
    """Answers a request that reached another server, here in any case: it is never forwarded again."""
    name, head, body = payload
    scope = {"type": "http", "app": None, "extensions": {}, "state": {}, "path_params": {}, **head}
    for pair in ("client", "server"):
        scope[pair] = tuple(scope[pair]) if scope[pair] else None
    scope["headers"] = [(field, value) for field, value in head["headers"]]
    response = await _routes[name].endpoint(_request(scope, body))
    return [response.status_code, [[*pair] for pair in response.raw_headers], bytes(response.body)]


def _head(request: Request) -> dict[str, Any]:
    scope = request.scope
    copied = {field: scope[field] for field in _COPIED if field in scope}
    return {
        **copied,
        "headers": [[*pair] for pair in scope["headers"]],
        "client": scope.get("client"),
        "server": scope.get("server"),
    }


def _request(scope: dict[str, Any], body: bytes) -> Request:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return Request(scope, receive)


def _response(forwarded: list[Any]) -> Response:
    status, headers, body = forwarded
    response = Response(body, status)
    response.raw_headers = [(name, value) for name, value in headers]
    return response
