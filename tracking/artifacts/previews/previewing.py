"""What a page can show of a file without handing it to the browser as it is."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from django.utils.safestring import SafeString

from tracking import notes
from tracking.artifacts.places import Row
from tracking.artifacts.previews import tables
from tracking.artifacts.previews.tables import Table
from tracking.artifacts.sending import image_type
from workspaces import blobs

MOST_TEXT_BYTES = 200 * 1024
MOST_JSON_BYTES = 20 * 1024 * 1024
MOST_IMAGE_BYTES = 50 * 1024 * 1024
MARKDOWN = (".md", ".markdown")
MAPS = ("scattergeo", "scattermap", "choropleth", "densitymap")
"""Kinds of traces."""
_LONGEST_CHARACTER_BYTES = 4


@dataclass(frozen=True)
class Preview:
    """`kind`: text, markdown, image, table, figure; "" where there is nothing to show, and `sentence` says why.

    `is_cut`: only the beginning is shown.
    """

    kind: str
    text: str = ""
    html: SafeString | None = None
    table: Table | None = None
    is_cut: bool = False
    sentence: str = ""


def preview(row: Row) -> Preview:
    """Of a file whose bytes are here, else a word that they are not."""
    suffix = PurePosixPath(row.path).suffix.lower()
    if not blobs.exists(row.sha256):
        return Preview("", sentence="Its bytes are missing on the hub; restore the data folder from a backup.")
    if image_type(row.path) is not None:
        if row.size_bytes <= MOST_IMAGE_BYTES:
            return Preview("image")
        return Preview("", sentence="The image is too large to be shown here.")
    if suffix == ".json" and row.size_bytes <= MOST_JSON_BYTES:
        with suppress(RecursionError):  # nested beyond reason: shown as it is
            told = _json(row)
            if told is not None:
                return _of_json(told)
    return _of_text(row, suffix)


def is_figure(told: Any) -> bool:
    """Whether plotly can draw it here: a list of traces, each an object, and an object for the layout. Maps it would have to
    fetch from elsewhere."""
    if not isinstance(told, dict) or not isinstance(told.get("data"), list) or not isinstance(told.get("layout", {}), dict):
        return False
    traces = told["data"]
    return "layout" in told and all(isinstance(trace, dict) and not str(trace.get("type")).startswith(MAPS) for trace in traces)


def _of_json(told: Any) -> Preview:
    if is_figure(told):
        return Preview("figure")
    table = tables.of_json(told)
    if table is not None:
        return Preview("table", table=table, is_cut=table.is_cut)
    text = tables.sendable(json.dumps(told, indent=2, ensure_ascii=False))
    return Preview("text", text=text[:MOST_TEXT_BYTES], is_cut=len(text) > MOST_TEXT_BYTES)


def _of_text(row: Row, suffix: str) -> Preview:
    with blobs.path(row.sha256).open("rb") as file:
        data = file.read(MOST_TEXT_BYTES)
    is_cut = row.size_bytes > len(data)
    text = _decoded(data, is_cut=is_cut)
    if text is None:
        return Preview("", sentence="There is no preview of this kind of file.")
    if suffix in MARKDOWN:
        return Preview("markdown", html=notes.render(text), is_cut=is_cut)
    if suffix in (".csv", ".tsv"):
        table = tables.of_text(text, delimiter="\t" if suffix == ".tsv" else tables.delimiter_of(text), is_cut=is_cut)
        if table is not None:
            return Preview("table", table=table, is_cut=table.is_cut)
    return Preview("text", text=text, is_cut=is_cut)


def _json(row: Row) -> Any:
    """None for what is no JSON: it is shown as text."""
    try:
        return json.loads(blobs.path(row.sha256).read_bytes())
    except ValueError:
        return None


def _decoded(data: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 (the last character may be cut), or None for what is no text."""
    if b"\0" in data:
        return None
    for short in range(_LONGEST_CHARACTER_BYTES if is_cut else 1):
        try:
            return data[: len(data) - short].decode()
        except UnicodeDecodeError:
            continue
    return None
