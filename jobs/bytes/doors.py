"""Who asks, and how this app's raw routes answer when they refuse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from django.conf import settings
from django.db import close_old_connections
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clusters import familiar
from clusters.enrolment import node_of_token
from clusters.models import Node
from workspaces.access import Principal
from workspaces.scopes import bearer, principal_of_scope
from workspaces.stored_files.responses import PRIVATE

P = ParamSpec("P")
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]
_few = anyio.CapacityLimiter(2)


class Problem(Exception):
    """An answer that is not the one asked for (RFC 9457)."""

    def __init__(self, status: int, title: str, detail: str = "", **headers: str) -> None:
        super().__init__(detail or title)
        self.status, self.title, self.detail, self.headers = status, title, detail, headers

    def response(self) -> Response:
        body: dict[str, Any] = {"type": "about:blank", "title": self.title, "status": self.status}
        if self.detail:
            body["detail"] = self.detail
        body |= self.more()
        named = {**PRIVATE, **{name.replace("_", "-"): value for name, value in self.headers.items()}}
        return JSONResponse(body, self.status, headers=named, media_type="application/problem+json")

    def more(self) -> dict[str, Any]:
        return {}


class WrongField(Problem):
    """One that names the field, as Django's side of the API does."""

    def __init__(self, status: int, title: str, field: str, message: str) -> None:
        super().__init__(status, title, f"{field}: {message}")
        self.field, self.message = field, message

    def more(self) -> dict[str, Any]:
        return {"errors": [{"field": self.field, "message": self.message}]}


def door(handler: Handler) -> Handler:
    """Turn a Problem into its answer."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except Problem as problem:
            return problem.response()

    return guarded


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work, such as the database's, beside the event loop."""
    return await anyio.to_thread.run_sync(partial(_with_connections, partial(function, *args, **kwargs)))


async def in_turn(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same, a few at a time and in the order in which they came: for what hundreds of nodes ask at once.

    SQLite lets one write and has the others try again by chance: of forty threads the unlucky ones gave up after 20 s.
    """
    return await anyio.to_thread.run_sync(partial(_with_connections, partial(function, *args, **kwargs)), limiter=_few)


def waiting_in_turn() -> int:
    """How many wait for `in_turn` now."""
    return _few.statistics().tasks_waiting


def _with_connections(work: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


async def node(request: Request) -> Node:
    """The node whose token the request bears, or 401. A revoked token may work a moment longer."""
    text = bearer(request.scope) or ""
    found = familiar.recall(text)
    if found is None and text:
        found = await in_thread(familiar.look_up, text)
    if found is None:
        raise unauthorized("A node's token is needed.")
    return found


async def node_or_principal(request: Request) -> Node | Principal:
    """A node by its token, or a person by token or session; else 401."""
    principal = await principal_of_scope(request.scope)
    if principal is not None:
        return principal
    text = bearer(request.scope)
    found = await in_thread(node_of_token, text) if text else None
    if found is None:
        raise unauthorized("Sign in, or give a token.")
    return found


async def person(request: Request) -> Principal:
    principal = await principal_of_scope(request.scope)
    if principal is None:
        raise unauthorized("Sign in, or give a token.")
    return principal


def unauthorized(detail: str) -> Problem:
    return Problem(401, "Not signed in", detail, WWW_Authenticate="Bearer")


def not_found(detail: str) -> Problem:
    return Problem(404, "Not found", detail)


async def body(request: Request, most: int) -> bytes:
    """The whole body, refused as soon as it is known to be larger than `most` bytes."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise _too_large(most)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def hub_url(request: Request) -> str:
    """How who asks reaches the hub: as they have just done. Only PUBLIC_URL and API_URL know that a proxy spoke TLS."""
    known = {urlsplit(url).netloc: urlsplit(url).scheme for url in (settings.PUBLIC_URL, settings.API_URL)}
    return f"{known.get(request.url.netloc, request.url.scheme)}://{request.url.netloc}"


def integer(request: Request, name: str, default: int, *, most: int = 2**62) -> int:
    """A number in the query, or 400 naming it."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19 or int(text) > most:
        raise Problem(400, "Bad request", f"{name} must be a whole number from 0 to {most}, not {text[:40]!r}.")
    return int(text)


def _too_large(most: int) -> Problem:
    return Problem(413, "Too large", f"At most {most} bytes are taken at once.", Connection="close")
