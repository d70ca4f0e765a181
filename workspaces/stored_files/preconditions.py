"""Conditional requests and byte ranges as RFC 9110 describes them (sections 13 and 14).

Whoever uses this has decided before that the caller may have the file: an answer 304, 412 or 206 also tells
that it exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from django.utils import timezone
from django.utils.http import http_date, parse_http_date_safe

MAX_RANGES = 100
NOT_MODIFIED, PRECONDITION_FAILED = 304, 412
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_TAGS = re.compile(rf"\s*,*\s*{_TAG.pattern}(?:\s*,\s*(?:{_TAG.pattern})?)*\s*\Z")
_RANGES = re.compile(r"\s*bytes\s*=(.*)\Z", re.IGNORECASE)
_RANGE = re.compile(r"(\d{0,30})-(\d{0,30})\Z")
_STRONG_AFTER_S = 1

Span = tuple[int, int]
"""Start and end of a piece of a file; the end is not part of it."""


def last_modified(modified_at: datetime | None) -> str | None:
    """The date for the header Last-Modified. None while the file could change again within the same second: a
    client could not tell the two states apart by their dates."""
    if modified_at is None or (timezone.now() - modified_at).total_seconds() <= _STRONG_AFTER_S:
        return None
    return http_date(modified_at.timestamp())


def failed(method: str, headers: Mapping[str, str], etag: str, modified: str | None) -> int | None:
    """304 or 412 if the conditions of the request say so, in the order of RFC 9110, 13.2.2; None if the file
    is to be sent.

    `etag` is the file's strong entity tag with its quotes, `modified` its Last-Modified.
    """
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
        if since is not None and modified_at <= since:
            return NOT_MODIFIED
    return None


def spans(
    method: str, headers: Mapping[str, str], size: int, etag: str, modified: str | None
) -> list[Span] | None:
    """The pieces of the file that are asked for, in order and without overlaps; None for the whole file.

    An empty list means that nothing of what is asked for lies inside the file (416). Unknown units, wrong
    syntax, more than MAX_RANGES pieces and a failed If-Range are ignored, as is a range of anything but a
    GET."""
    found = _RANGES.match(headers.get("range", ""))
    if method != "GET" or found is None or not _range_is_current(headers, etag, modified):
        return None
    parts = [part.strip() for part in found[1].split(",") if part.strip()]
    matches = [_RANGE.match(part) for part in parts]
    if not matches or len(matches) > MAX_RANGES:
        return None
    wanted: list[Span] = []
    for match in matches:
        if match is None or match[0] == "-" or (match[1] and match[2] and int(match[1]) > int(match[2])):
            return None
        if match[1]:
            span = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        else:
            span = max(size - int(match[2]), 0), size
        if span[0] < span[1]:
            wanted.append(span)
    return _merged(wanted)


def _merged(wanted: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(wanted):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _range_is_current(headers: Mapping[str, str], etag: str, modified: str | None) -> bool:
    told = headers.get("if-range")
    return told is None or told.strip() in (etag, modified)


def _matches(told: str, etag: str, *, weak: bool) -> bool:
    """Whether a list of entity tags, or `*`, names this one."""
    if told.strip() == "*":
        return True
    if not _TAGS.match(told):
        return False
    tags = _TAG.findall(told)
    return etag in ([tag.removeprefix("W/") for tag in tags] if weak else tags)


def _date(headers: Mapping[str, str], name: str) -> int | None:
    told = headers.get(name)
    return parse_http_date_safe(told) if told else None
