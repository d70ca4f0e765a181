"""Routes whose requests one certain server answers, whichever server they reach.

A request that another server must answer travels there whole, over the link; so does its answer. Where that
server does not answer, this one does: it need not know what the other has done already, because everything on
such a route may be done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from workspaces.http.problems import Problem, problem_responses
from workspaces.http.requests import read_body
from workspaces.servers.link_frames import Payload
from workspaces.servers.links import LinkBroken, links
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import OtherServer

CALL = "http"
Endpoint = Callable[[Request], Awaitable[Response]]
# Of the ASGI scope, what endpoints read.
_COPIED = ("method", "scheme", "path", "raw_path", "query_string", "root_path", "path_params", "http_version")


@dataclass(frozen=True)
class OwnedRoute:
    """An endpoint, which server answers a request (None: this one), the limit of its body, and what `admit`
    checks before the body is read: it raises Problem, as the endpoint itself would."""

    endpoint: Endpoint
    owner: Callable[[Request], OtherServer | None]
    admit: Callable[[Request], Awaitable[None]]
    max_body_bytes: int


_routes: dict[str, OwnedRoute] = {}


def at_owner(name: str, route: OwnedRoute) -> Endpoint:
    """Returns an endpoint that has the owner of a request answer it. `name`: the same on every server."""
    _routes[name] = route

    @problem_responses
    async def answer(request: Request) -> Response:
        if ring.is_alone:
            return await route.endpoint(request)
        if not ring.is_current:
            raise Problem(503, "Not yet", "This server cannot say that it lives.", Retry_After="1")
        owner = route.owner(request)
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


async def answer_forwarded(payload: Payload) -> list[Payload]:
    """Answers a request that reached another server, here in any case: it is never forwarded again."""
    name, head, body = payload
    scope = {"type": "http", "app": None, "extensions": {}, "state": {}, **head}
    for pair in ("client", "server"):
        scope[pair] = tuple(scope[pair]) if scope[pair] else None
    scope["headers"] = [(field, value) for field, value in head["headers"]]
    response = await _routes[name].endpoint(_request(scope, body))
    return [response.status_code, [[*pair] for pair in response.raw_headers], await _whole_body(response)]


async def _whole_body(response: Response) -> bytes:
    if not isinstance(response, StreamingResponse):
        return bytes(response.body)
    chunks = [chunk async for chunk in response.body_iterator]
    if response.background is not None:
        await response.background()
    return b"".join(chunk.encode() if isinstance(chunk, str) else bytes(chunk) for chunk in chunks)


def _head(request: Request) -> dict[str, Payload]:
    scope = request.scope
    copied = {field: scope[field] for field in _COPIED if field in scope}
    return {
        **copied,
        "headers": [[*pair] for pair in scope["headers"]],
        "client": scope.get("client"),
        "server": scope.get("server"),
    }


def _request(scope: dict[str, Payload], body: bytes) -> Request:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return Request(scope, receive)


def _response(forwarded: list[Payload]) -> Response:
    status, headers, body = forwarded
    response = Response(body, status)
    response.raw_headers = [(name, value) for name, value in headers]
    return response
