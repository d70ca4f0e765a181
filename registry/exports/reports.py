"""Reads the report of an export. A job wrote it, so only expected fields are stored, and each within its
bounds."""

from __future__ import annotations

import json
import math
from typing import Any

from trainhub_launch.json_types import JsonObject

MAX_BYTES = 1024 * 1024
MAX_ITEMS = 200
LONGEST = 2000
INFINITE = "infinite"
TEXTS = ("format", "exporter", "kind", "file", "example", "refusal", "field")


def read(data: bytes) -> dict[str, Any]:
    """Returns the report without anything unexpected; {} if `data` is not a JSON object."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(fields, dict):
        return {}
    report: dict[str, object] = {
        name: _text(fields[name]) for name in TEXTS if isinstance(fields.get(name), str)
    }
    if isinstance(fields.get("opset"), int):
        report["opset"] = fields["opset"]
    report["versions"] = {
        _text(name): _text(value) for name, value in _pairs(fields.get("versions")) if isinstance(value, str)
    }
    report["sizes"] = {
        _text(name): value for name, value in _pairs(fields.get("sizes")) if isinstance(value, int)
    }
    report["tolerance"] = {
        name: value
        for name, value in _pairs(fields.get("tolerance"))
        if name in ("relative", "absolute") and _is_number(value)
    }
    report["inputs"] = [_tensor(item) for item in _rows(fields.get("inputs"))]
    report["outputs"] = [_tensor(item) for item in _rows(fields.get("outputs"))]
    report["dynamic"] = {
        _text(name): {_text(axis): _text(word) for axis, word in _pairs(axes) if isinstance(word, str)}
        for name, axes in _pairs(fields.get("dynamic"))
    }
    report["batches"] = [_text(item) for item in _list(fields.get("batches")) if isinstance(item, str)]
    report["differences"] = [_difference(item) for item in _rows(fields.get("differences"))]
    return report


def _tensor(item: dict[str, Any]) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else _text(str(size)) for size in _list(item.get("shape"))]
    return {
        "name": _text(str(item.get("name", ""))),
        "dtype": _text(str(item.get("dtype", ""))),
        "shape": shape,
    }


def _difference(item: dict[str, Any]) -> dict[str, object]:
    sizes = {name: item.get(name) for name in ("max_absolute", "max_relative")}
    return {
        "output": _text(str(item.get("output", ""))),
        "batch": _text(str(item.get("batch", ""))),
        "within": item.get("within") is True,
        **{name: value if _is_number(value) else INFINITE for name, value in sizes.items()},
    }


def _is_number(value: object) -> bool:
    # json.loads() also accepts NaN and Infinity, which PostgreSQL's JSON does not.
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(value: str) -> str:
    """Returns `value` shortened and without NUL, which PostgreSQL does not store."""
    return value[:LONGEST].replace("\x00", "")


def _list(value: object) -> list[object]:
    return value[:MAX_ITEMS] if isinstance(value, list) else []


def _rows(value: object) -> list[JsonObject]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _pairs(value: object) -> list[tuple[str, object]]:
    return list(value.items())[:MAX_ITEMS] if isinstance(value, dict) else []
