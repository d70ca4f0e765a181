"""Reads parts of requests to raw routes: the body within a limit, numbers in the query, and the hub's address
as the client knows it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.conf import settings
from starlette.requests import Request

from workspaces.http.problems import Problem

_DECIMAL = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Returns the whole body; raises Problem 413 as soon as it is known to be larger than `max_bytes`."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise _too_large(max_bytes)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def hub_url(request: Request) -> str:
    """Returns the address under which the client reached the hub. Only PUBLIC_URL and API_URL tell that a
    proxy spoke TLS."""
    schemes = {urlsplit(url).netloc: urlsplit(url).scheme for url in (settings.PUBLIC_URL, settings.API_URL)}
    return f"{schemes.get(request.url.netloc, request.url.scheme)}://{request.url.netloc}"


def query_integer(request: Request, name: str, default: int, *, maximum: int = 2**62) -> int:
    """Returns a number in the query. Raises Problem 400 that names it if it is no number or too large."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19 or int(text) > maximum:
        raise Problem(
            400, "Bad request", f"{name} must be a whole number from 0 to {maximum}, not {text[:40]!r}."
        )
    return int(text)


def query_number(request: Request, name: str, default: float, *, maximum: int) -> float:
    """Returns a number in the query that may have decimals. Raises Problem 400 that names it if it is no
    number or too large."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _DECIMAL.fullmatch(text) or float(text) > maximum:
        raise Problem(400, "Bad request", f"{name} must be a number from 0 to {maximum}, not {text[:40]!r}.")
    return float(text)


def _too_large(max_bytes: int) -> Problem:
    return Problem(413, "Too large", f"At most {max_bytes} bytes are accepted at once.", Connection="close")
