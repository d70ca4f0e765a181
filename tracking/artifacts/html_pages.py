"""HTML files of users, for a sandboxed frame: no scripts, no origin, no cookies, no network."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from tracking.artifacts.file_owners import FileRow
from tracking.artifacts.file_responses import HEADERS
from workspaces.stored_files import blobs

MAX_HTML_BYTES = 8 * 2**20
_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)


def html_response(request: Request, content: bytes) -> Response:
    """Returns the HTML for a frame. Opened by itself it is a download, so that no link leads to a page of a
    user's making at the hub's address."""
    headers = {**HEADERS, "Content-Security-Policy": _POLICY, "X-Frame-Options": "SAMEORIGIN"}
    if request.headers.get("Sec-Fetch-Dest") == "document":
        headers["Content-Disposition"] = "attachment"
    return Response(content, media_type="text/html", headers=headers)


def has_scripts(row: FileRow) -> bool:
    return _SCRIPT.search(blobs.path(row.sha256).read_bytes()) is not None
