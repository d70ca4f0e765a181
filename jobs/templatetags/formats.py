"""Template filters for numbers, times and states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from jobs.display.text import bytesize, duration, status_style

register = template.Library()


register.filter("status_style", status_style)
register.filter("bytesize", bytesize)
register.filter("duration", duration)


@register.filter
def attribute(value: object, name: str) -> object:
    """Returns an attribute of a filter's result, as in `{{ state|status_style|attribute:'tone' }}`."""
    return getattr(value, name)


@register.filter
def code_spans(text: str) -> str:
    """Returns the text as HTML in which words between backquotes are code."""
    return format_html_join("", "{}{}", _pieces(text))


@register.filter
def ago(at: datetime | None) -> str:
    if at is None:
        return ""
    seconds = (timezone.now() - at).total_seconds()
    if seconds < 5:
        return "just now"
    if seconds < 60:
        return f"{int(seconds)} s ago"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    return f"{int(seconds // 3600)} h ago" if seconds < 48 * 3600 else f"{int(seconds // 86400)} d ago"


@register.filter
def attempts(latest: int) -> range:
    return range(1, latest + 1)


@register.filter
def short(text: str) -> str:
    return str(text)[:8]


def _pieces(text: str) -> Iterator[tuple[str, SafeString | str]]:
    for plain, code in re.findall(r"([^`]*)(?:`([^`]*)`)?", text):
        yield plain, format_html("<code>{}</code>", code) if code else ""
