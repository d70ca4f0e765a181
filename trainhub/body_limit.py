"""Limits the bodies of requests before Django. Django stores a whole body before any view can refuse it, so
large bodies are checked here."""

from __future__ import annotations

from django.conf import settings
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from live.origins import header
from workspaces.http.problems import problem_response
from workspaces.http.scopes import principal_of_scope

ANYBODYS_BYTES = 1024 * 1024
# What the other fields of a form add to the uploaded source, generously estimated.
FORM_BYTES = 1024 * 1024


class LargeBodies:
    """Accepts bodies above ANYBODYS_BYTES only from people and programs that have signed in, and none larger
    than the largest source."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _declared_length(scope) <= ANYBODYS_BYTES:
            await self._app(scope, receive, send)
            return
        most = settings.MAX_SNAPSHOT_BYTES + FORM_BYTES
        if _declared_length(scope) > most:
            await _problem(413, "Content Too Large", f"At most {most // 2**20} MiB are accepted at once.")(
                scope, receive, send
            )
        elif await principal_of_scope(scope) is None:
            await _problem(401, "Unauthorized", "Sign in, or send a token, before you send this much.")(
                scope, receive, send
            )
        else:
            await self._app(scope, _counted(receive, most), send)


def _declared_length(scope: Scope) -> int:
    """Returns the length of the body that the request declares, in bytes. A body without a declared length
    (chunked) counts as large."""
    text = header(scope, "content-length").lstrip("0")
    if text.isdecimal():
        # A number of 20 digits is past every limit, and `int` raises an error for thousands of digits.
        return int(text[:20])
    return ANYBODYS_BYTES + 1 if header(scope, "transfer-encoding") else 0


def _counted(receive: Receive, most: int) -> Receive:
    """Returns a `receive` that reports a disconnect to Django as soon as the body is larger than `most`.
    Django then deletes what it has stored."""
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        # Content-Length is only the client's claim, and a chunked body has none, so the bytes are counted.
        return {"type": "http.disconnect"} if received > most else message

    return counted


def _problem(status: int, title: str, detail: str) -> Response:
    # The rest of the body is not read, so the connection cannot be used again.
    return problem_response(status, title, detail, headers={"Connection": "close"})
