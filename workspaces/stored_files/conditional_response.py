"""What every download of one file answers alike: its headers, conditions and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from workspaces.stored_files import preconditions
from workspaces.stored_files.preconditions import Span

OCTETS = "application/octet-stream"
# For every answer that depends on who asks: it may be stored by its reader alone, and is to be asked for
# again each time.
PRIVATE = {"Cache-Control": "private, no-cache", "Vary": "Cookie, Authorization, Accept-Encoding"}


class ConditionalResponse(Response):
    """The head of a download. The caller has checked before that the client may have the file. `etag`: with
    its quotation marks."""

    def __init__(
        self,
        etag: str,
        filename: str,
        media_type: str,
        modified_at: datetime | None,
        headers: Mapping[str, str] | None,
    ) -> None:
        self.status_code, self.background, self.body = 200, None, b""
        self._etag = etag
        self._modified = preconditions.last_modified(modified_at)
        own_headers = {"Content-Type": media_type, "ETag": etag, "Accept-Ranges": "bytes"}
        self.init_headers({**PRIVATE, **(headers or {}), **own_headers})
        # Starlette would say 0, the length of the body that it was given.
        del self.headers["content-length"]
        if self._modified:
            self.headers["last-modified"] = self._modified
        if filename:
            self.headers["content-disposition"] = attachment(filename)

    def answer_early(self, scope: Scope, size: int) -> tuple[Response | None, list[Span] | None]:
        """Returns an answer without content (304, 412, 416, or to HEAD), or None; and then the ranges of the
        file to send, None for all of it. `size`: of the file, in bytes."""
        method, headers = scope["method"], Headers(scope=scope)
        refused = preconditions.failed(method, headers, self._etag, self._modified)
        if refused == preconditions.NOT_MODIFIED:
            return self._without_content(304), None
        if refused:
            detail = "The file is not in the state that the request names; fetch it again."
            return refusal(412, "Precondition failed", detail), None
        spans = preconditions.spans(method, headers, size, self._etag, self._modified)
        if spans == []:
            return self._without_content(416, {"Content-Range": f"bytes */{size}"}), None
        if method == "HEAD":
            facts = {"Content-Length": str(size), "Content-Type": self.headers["content-type"]}
            return self._without_content(200, facts), None
        return None, spans

    def set_span(self, span: Span, size: int) -> None:
        """Sets the headers of an answer with one range of the file."""
        start, end = span
        self.headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        self.headers["content-length"] = str(end - start)

    def _without_content(self, status: int, more: Mapping[str, str] | None = None) -> Response:
        dropped = ["content-type", "content-length", *(["content-disposition"] if status == 304 else [])]
        headers = {name: value for name, value in self.headers.items() if name not in dropped}
        answer = Response(status_code=status, headers={**headers, **(more or {})})
        if status == 304:
            del answer.headers["content-length"]
        return answer


def attachment(filename: str) -> str:
    """Returns the header Content-Disposition of a download with that name."""
    quoted = quote(filename)
    return (
        f'attachment; filename="{filename}"'
        if quoted == filename
        else f"attachment; filename*=utf-8''{quoted}"
    )


def refusal(status: int, title: str, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Returns a problem (RFC 9457) that an answer turns into after its handler has returned it."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(
        body, status, headers={**PRIVATE, **(headers or {})}, media_type="application/problem+json"
    )
