"""Conditional requests and byte ranges as in RFC 9110 (sections 13 and 14).

Callers must have checked before that the client may have the file, because the statuses 304, 412 and 206
reveal that it exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone
from django.utils.http import http_date, parse_http_date_safe

# A client that asks for many tiny pieces makes the hub send more headers than content (RFC 9110, 17.15).
MAX_RANGES = 100
NOT_MODIFIED, PRECONDITION_FAILED = 304, 412
# entity-tag of RFC 9110, 8.8.3.
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_TAGS = re.compile(rf"\s*,*\s*{_TAG.pattern}(?:\s*,\s*(?:{_TAG.pattern})?)*\s*\Z")
_RANGES = re.compile(r"\s*bytes\s*=(.*)\Z", re.IGNORECASE)
_RANGE = re.compile(r"(\d{0,30})-(\d{0,30})\Z")
_STRONG_AFTER_S = 1

# Start and end of a piece of a file; the end is not part of it.
Span = tuple[int, int]


def last_modified(modified_at: datetime | None) -> str | None:
    """Returns the date for the header Last-Modified. None while the file could change again within the same
    second, because a client could not distinguish the two states by their dates."""
    if modified_at is None or (timezone.now() - modified_at).total_seconds() <= _STRONG_AFTER_S:
        return None
    return http_date(modified_at.timestamp())


def failed(method: str, headers: Mapping[str, str], etag: str, modified: str | None) -> int | None:
    """Returns 304 or 412 if the request's conditions demand it, in the order of RFC 9110, 13.2.2; None if the
    file is to be sent.

    `etag` is the file's strong entity tag with its quotes, `modified` its Last-Modified."""
    modified_at = parse_http_date_safe(modified) if modified else None
    if "if-match" in headers:
        if not _matches(headers["if-match"], etag, weak=False):
            return PRECONDITION_FAILED
    elif (
        (limit := _date(headers, "if-unmodified-since")) is not None
        and modified_at is not None
        and modified_at > limit
    ):
        return PRECONDITION_FAILED
    if "if-none-match" in headers:
        if _matches(headers["if-none-match"], etag, weak=True):
            return NOT_MODIFIED if method in ("GET", "HEAD") else PRECONDITION_FAILED
    elif method in ("GET", "HEAD") and modified_at is not None:
        since = _date(headers, "if-modified-since")
        # HTTP dates have whole seconds.
        if since is not None and modified_at <= since:
            return NOT_MODIFIED
    return None


def spans(
    method: str, headers: Mapping[str, str], size: int, etag: str, modified: str | None
) -> list[Span] | None:
    """Returns the requested ranges of the file, sorted and without overlaps; None for the whole file.

    An empty list means that no requested range lies inside the file (416). Unknown units, wrong syntax, more
    than MAX_RANGES ranges and a failed If-Range are ignored, as is a range in anything but a GET."""
    header = _RANGES.match(headers.get("range", ""))
    if method != "GET" or header is None or not _range_is_current(headers, etag, modified):
        return None
    parts = [part.strip() for part in header[1].split(",") if part.strip()]
    matches = [_RANGE.match(part) for part in parts]
    if not matches or len(matches) > MAX_RANGES:
        return None
    spans: list[Span] = []
    for match in matches:
        # "-" alone, and a start behind its end, are syntax errors, for which the whole header is ignored.
        if match is None or match[0] == "-" or (match[1] and match[2] and int(match[1]) > int(match[2])):
            return None
        if match[1]:
            span = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        else:
            span = max(size - int(match[2]), 0), size
        if span[0] < span[1]:
            spans.append(span)
    return _merged(spans)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _range_is_current(headers: Mapping[str, str], etag: str, modified: str | None) -> bool:
    validator = headers.get("if-range")
    # Exact equality for dates, too, as RFC 9110, 13.1.5 demands for If-Range.
    return validator is None or validator.strip() in (etag, modified)


def _matches(header: str, etag: str, *, weak: bool) -> bool:
    """Returns whether a list of entity tags, or `*`, matches `etag`."""
    if header.strip() == "*":
        return True
    if not _TAGS.match(header):
        return False
    tags = _TAG.findall(header)
    return etag in ([tag.removeprefix("W/") for tag in tags] if weak else tags)


def _date(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name)
    return parse_http_date_safe(text) if text else None
