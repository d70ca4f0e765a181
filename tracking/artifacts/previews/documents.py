"""Previews of JSON files: a figure, a table or indented text.

This module uses neither Django nor the database, because the child process (`child`) that parses large files
imports it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from tracking.artifacts.previews import tables
from tracking.artifacts.previews.tables import PreviewTable

# Limit of the text on a page, in bytes of the file or characters of indented JSON.
MAX_TEXT = 200 * 1024
# Types of traces that load a map from another server.
MAPS = ("scattergeo", "scattermap", "choropleth", "densitymap")
TEXT, TABLE, FIGURE = "text", "table", "figure"
# Inside a script element these could end the element, and U+2028 and U+2029 end a line in older JavaScript.
_ESCAPED = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class NotPreviewable(Exception):
    """The file cannot be shown in this form; `str()` is the reason."""


@dataclass(frozen=True)
class JsonPreview:
    """`kind` is text, table or figure; `is_cut` says that only the beginning is shown."""

    kind: str
    text: str = ""
    table: PreviewTable | None = None
    is_cut: bool = False


def preview_json(data: bytes) -> JsonPreview:
    """Returns the preview of a JSON file. Raises NotPreviewable if it is not JSON or nested too deeply."""
    parsed = _parse(data)
    if is_figure(parsed):
        return JsonPreview(FIGURE)
    try:
        table = tables.parse_json_table(parsed)
        if table is not None:
            return JsonPreview(TABLE, table=table, is_cut=table.is_cut)
        text, is_cut = _indented(parsed)
    except RecursionError as error:
        raise NotPreviewable("it is nested too deeply") from error
    return JsonPreview(TEXT, text=tables.encodable(text), is_cut=is_cut)


def figure_json(data: bytes) -> bytes:
    """Returns a plotly figure as JSON that is safe inside HTML, without images that the page would not load.
    Raises NotPreviewable."""
    parsed = _parse(data)
    if not is_figure(parsed):
        raise NotPreviewable("it is not a plotly figure, which needs the list 'data' and the object 'layout'")
    layout = {
        **parsed["layout"],
        "images": [image for image in _list(parsed["layout"].get("images")) if _is_inline(image)],
    }
    try:
        # orjson writes NaN and infinities as null, which plotly draws as gaps.
        return orjson.dumps({"data": parsed["data"], "layout": layout}).decode().translate(_ESCAPED).encode()
    except orjson.JSONEncodeError as error:
        raise NotPreviewable(f"{error}; download it instead") from error


def is_figure(parsed: object) -> bool:
    """Returns whether plotly can draw it here: it has a list of trace objects and a layout object."""
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


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)  # not orjson, which refuses the NaN that Python writes
    except ValueError as error:
        raise NotPreviewable(f"it is not JSON: {str(error)[:200]}") from error
    except RecursionError as error:
        raise NotPreviewable("it is nested too deeply") from error


def _indented(parsed: object) -> tuple[str, bool]:
    """Returns the start of the indented text, and whether it was cut.

    Indentation multiplies the size of nested JSON, so the text is generated piece by piece.
    """
    pieces, room = [], MAX_TEXT
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(parsed):
        pieces.append(piece[:room])
        if len(piece) > room:
            return "".join(pieces), True
        room -= len(piece)
    return "".join(pieces), False


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_inline(image: object) -> bool:
    source = image.get("source") if isinstance(image, dict) else None
    return isinstance(source, str) and source.startswith("data:")
