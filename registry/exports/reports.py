"""What the script reports, read as what it is: the word of somebody's job. Only what is expected is kept, in
its bounds."""

from __future__ import annotations

import json
import math
from typing import Any

MOST_BYTES = 1024 * 1024
MOST_ITEMS = 200
LONGEST = 2000
INFINITE = "infinite"
TEXTS = ("format", "exporter", "kind", "file", "example", "refusal", "field")


def read(data: bytes) -> dict[str, Any]:
    """The report with all that is not of the agreed shape left out; {} where it is none."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    found: dict[str, Any] = {name: _text(told[name]) for name in TEXTS if isinstance(told.get(name), str)}
    if isinstance(told.get("opset"), int):
        found["opset"] = told["opset"]
    found["versions"] = {
        _text(name): _text(value) for name, value in _pairs(told.get("versions")) if isinstance(value, str)
    }
    found["sizes"] = {
        _text(name): value for name, value in _pairs(told.get("sizes")) if isinstance(value, int)
    }
    found["tolerance"] = {
        name: value
        for name, value in _pairs(told.get("tolerance"))
        if name in ("relative", "absolute") and _is_number(value)
    }
    found["inputs"] = [_tensor(item) for item in _rows(told.get("inputs"))]
    found["outputs"] = [_tensor(item) for item in _rows(told.get("outputs"))]
    found["dynamic"] = {
        _text(name): {_text(axis): _text(word) for axis, word in _pairs(axes) if isinstance(word, str)}
        for name, axes in _pairs(told.get("dynamic"))
    }
    found["batches"] = [_text(item) for item in _list(told.get("batches")) if isinstance(item, str)]
    found["differences"] = [_difference(item) for item in _rows(told.get("differences"))]
    return found


def _tensor(item: dict[str, Any]) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else _text(str(size)) for size in _list(item.get("shape"))]
    return {
        "name": _text(str(item.get("name", ""))),
        "dtype": _text(str(item.get("dtype", ""))),
        "shape": shape,
    }


def _difference(item: dict[str, Any]) -> dict[str, Any]:
    sizes = {name: item.get(name) for name in ("max_absolute", "max_relative")}
    return {
        "output": _text(str(item.get("output", ""))),
        "batch": _text(str(item.get("batch", ""))),
        "within": item.get("within") is True,
        **{name: value if _is_number(value) else INFINITE for name, value in sizes.items()},
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(value: str) -> str:
    """PostgreSQL keeps no NUL."""
    return value[:LONGEST].replace("\x00", "")


def _list(value: Any) -> list[Any]:
    return value[:MOST_ITEMS] if isinstance(value, list) else []


def _rows(value: Any) -> list[dict[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _pairs(value: Any) -> list[tuple[str, Any]]:
    return list(value.items())[:MOST_ITEMS] if isinstance(value, dict) else []
