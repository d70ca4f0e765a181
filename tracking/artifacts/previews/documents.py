"""What is shown of a JSON file: a figure, a table or the laid-out text.

This module knows neither Django nor the database, because large files are parsed by a process of their own
(`child`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from tracking.artifacts.previews import tables
from tracking.artifacts.previews.tables import Table

MAX_TEXT = 200 * 1024
"""The most of a text that a page shows, in bytes of the file or characters of laid-out JSON."""
MAPS = ("scattergeo", "scattermap", "choropleth", "densitymap")
"""Kinds of traces that fetch a map from elsewhere."""
TEXT, TABLE, FIGURE = "text", "table", "figure"
_ESCAPED = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class NotShown(Exception):
    """The file is not what was asked for; `str()` says why."""


@dataclass(frozen=True)
class Document:
    """`kind`: text, table or figure. `is_cut`: only the beginning is shown."""

    kind: str
    text: str = ""
    table: Table | None = None
    is_cut: bool = False


def document(data: bytes) -> Document:
    """What a page shows of a JSON file. Raises NotShown for what is no JSON or is nested too deeply."""
    parsed = _parsed(data)
    if is_figure(parsed):
        return Document(FIGURE)
    try:
        table = tables.of_json(parsed)
        if table is not None:
            return Document(TABLE, table=table, is_cut=table.is_cut)
        text, is_cut = _laid_out(parsed)
    except RecursionError as error:
        raise NotShown("it is nested too deeply") from error
    return Document(TEXT, text=tables.sendable(text), is_cut=is_cut)


def figure(data: bytes) -> bytes:
    """A plotly figure as JSON that may stand inside a page, without the images that the page would not load.
    Raises NotShown."""
    parsed = _parsed(data)
    if not is_figure(parsed):
        raise NotShown("it is no plotly figure, which needs the list 'data' and the object 'layout'")
    layout = {
        **parsed["layout"],
        "images": [image for image in _list(parsed["layout"].get("images")) if _is_inline(image)],
    }
    try:
        return orjson.dumps({"data": parsed["data"], "layout": layout}).decode().translate(_ESCAPED).encode()
    except orjson.JSONEncodeError as error:
        raise NotShown(f"{error}; download it instead") from error


def is_figure(parsed: Any) -> bool:
    """Whether plotly can draw it here: a list of traces, each an object, and an object for the layout."""
    if (
        not isinstance(parsed, dict)
        or not isinstance(parsed.get("data"), list)
        or not isinstance(parsed.get("layout", {}), dict)
    ):
        return False
    return "layout" in parsed and all(
        isinstance(trace, dict) and not str(trace.get("type"))[:99].startswith(MAPS)
        for trace in parsed["data"]
    )


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)  # not orjson, which refuses the NaN that Python writes
    except ValueError as error:
        raise NotShown(f"it is not JSON: {str(error)[:200]}") from error
    except RecursionError as error:
        raise NotShown("it is nested too deeply") from error


def _laid_out(parsed: Any) -> tuple[str, bool]:
    """The beginning of the indented text, and whether there is more. Indentation multiplies the size of
    nested JSON, so the text is made piece by piece and never as a whole."""
    pieces, room = [], MAX_TEXT
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(parsed):
        pieces.append(piece[:room])
        if len(piece) > room:
            return "".join(pieces), True
        room -= len(piece)
    return "".join(pieces), False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_inline(image: Any) -> bool:
    source = image.get("source") if isinstance(image, dict) else None
    return isinstance(source, str) and source.startswith("data:")
