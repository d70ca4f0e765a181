"""Django stores a request's whole body before any view can refuse it; so who may send much is asked before
that."""

from __future__ import annotations

from django.conf import settings
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from live.origins import header
from workspaces.http.problems import problem_response
from workspaces.http.scopes import principal_of_scope

ANYBODYS_BYTES = 1024 * 1024
FORM_BYTES = 1024 * 1024
"""What a form adds to the source it uploads, generously."""


class LargeBodies:
    """More than a form's worth is taken from known people only, and never more than the largest source."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _told(scope) <= ANYBODYS_BYTES:
            await self._app(scope, receive, send)
            return
        most = settings.MAX_SNAPSHOT_BYTES + FORM_BYTES
        if _told(scope) > most:
            await _problem(413, "Content Too Large", f"At most {most // 2**20} MiB are taken at once.")(
                scope, receive, send
            )
        elif await principal_of_scope(scope) is None:
            await _problem(401, "Unauthorized", "Sign in, or send a token, before you send this much.")(
                scope, receive, send
            )
        else:
            await self._app(scope, _counted(receive, most), send)


def _told(scope: Scope) -> int:
    """The length that the request declares; without one (chunked) it may be anything."""
    text = header(scope, "content-length")
    if text.isdecimal() and len(text) < 20:
        return int(text)
    return settings.MAX_SNAPSHOT_BYTES if header(scope, "transfer-encoding") else 0


def _counted(receive: Receive, most: int) -> Receive:
    """A sender who goes on beyond the limit is treated as gone: Django then drops what it has stored."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > most else message

    return counted


def _problem(status: int, title: str, detail: str) -> Response:
    # The rest of the body is not read, so the connection cannot be used again.
    return problem_response(status, title, detail, headers={"Connection": "close"})
