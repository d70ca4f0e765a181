"""The HTML of rows, each with its version: an open page fetches only the rows whose version has changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from tracking.history.rows import HistoryRow

TEMPLATE = "tracking/history/_row.html"
# Between tags and text only: attributes may contain what people have typed.
_WHITE_SPACE = re.compile(r"(?<=>)\s+|\s+(?=<)")
# How long ago a time was is written by the page.
_RELATIVE_TIME = re.compile(r"(<time [^>]*>)[^<]*")
_VERSION = re.compile(r'<tr data-version="(\w+)"')


def render_rows(
    rows: Iterable[HistoryRow], *, is_part: bool, is_deleted: bool, may_act: bool
) -> dict[int, SafeString]:
    """Returns the rows by the numbers of their runs. `is_part`: they stand below the run that they are part
    of; `is_deleted`: the table shows deleted runs."""
    context = {"is_part": is_part, "is_deleted": is_deleted, "may_act": may_act}
    return {row.run.number: _render(context | {"row": row}) for row in rows}


def version_of(markup: str) -> str:
    match = _VERSION.match(markup)
    return match[1] if match else ""


def _render(context: dict[str, object]) -> SafeString:
    markup = _WHITE_SPACE.sub("", render_to_string(TEMPLATE, context))
    version = hashlib.sha256(_RELATIVE_TIME.sub(r"\1", markup).encode()).hexdigest()[:8]
    return mark_safe(markup.replace("<tr ", f'<tr data-version="{version}" ', 1))  # noqa: S308
