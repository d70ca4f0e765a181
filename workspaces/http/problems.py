"""Refusals over HTTP as RFC 9457 problem details: the one place that writes their bodies.

Raw ASGI routes raise `Problem`; `workspaces.api.problems` turns the exceptions of Django and DRF into the
same bodies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from workspaces.object_store.errors import StoreUnavailable
from workspaces.stored_files.conditional_response import PRIVATE

CONTENT_TYPE = "application/problem+json"
Handler = Callable[[Request], Awaitable[Response]]


def problem_body(
    status: int, title: str, detail: str = "", errors: Iterable[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The JSON object of a problem. `errors` are (field, message) pairs, fields as JSON paths."""
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status}
    if detail:
        body["detail"] = detail
    listed = [{"field": field, "message": message} for field, message in errors]
    if listed:
        body["errors"] = listed
    return body


def problem_response(
    status: int,
    title: str,
    detail: str = "",
    errors: Iterable[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The response of a raw ASGI route that refuses a request."""
    return JSONResponse(
        problem_body(status, title, detail, errors), status, headers=headers, media_type=CONTENT_TYPE
    )


class Problem(Exception):
    """Raised by a raw route that refuses a request. Keyword arguments are headers, with `_` for `-`."""

    errors: tuple[tuple[str, str], ...] = ()

    def __init__(self, status: int, title: str, detail: str = "", **headers: str) -> None:
        super().__init__(detail or title)
        self.status, self.title, self.detail, self.headers = status, title, detail, headers

    def response(self) -> Response:
        headers = {**PRIVATE, **{name.replace("_", "-"): value for name, value in self.headers.items()}}
        return problem_response(self.status, self.title, self.detail, self.errors, headers)


class FieldProblem(Problem):
    """A problem that names the wrong field, as Django's side of the API does."""

    def __init__(self, status: int, title: str, field: str, message: str) -> None:
        super().__init__(status, title, f"{field}: {message}")
        self.field, self.message = field, message
        self.errors = ((field, message),)


def problem_responses(handler: Handler) -> Handler:
    """Decorates a raw route: a `Problem` that it raises becomes the response, and an object store that is
    away becomes 503."""

    @wraps(handler)
    async def wrapper(request: Request) -> Response:
        try:
            return await handler(request)
        except Problem as problem:
            return problem.response()
        except StoreUnavailable as error:
            return Problem(503, "Not readable now", str(error), Retry_After="10").response()

    return wrapper


def unauthorized(detail: str) -> Problem:
    return Problem(401, "Not signed in", detail, WWW_Authenticate="Bearer")


def not_found(detail: str) -> Problem:
    return Problem(404, "Not found", detail)
