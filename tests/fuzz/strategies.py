"""Hostile values: bytes that nearly are what a parser expects, and values that are valid but extreme."""

from __future__ import annotations

from typing import Any

import msgpack
from hypothesis import strategies as st

from tests.jobs.raw import packed

REPORT: dict[str, Any] = msgpack.unpackb(packed())
EXTREME_NUMBERS = st.sampled_from(
    [0, -1, 2**31, 2**53, 2**63 - 1, -(2**63), 1e308, -0.0, float("nan"), float("inf"), 5e-324]
)
TEXTS = st.text(max_size=40) | st.sampled_from(
    ["", "\0", "../..", "a/b", "NaN", "=1", "\u202e", "x" * 1000, "９", "１2"]
)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats() | EXTREME_NUMBERS
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS | st.binary(max_size=40)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
JSON_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON_VALUES = st.recursive(
    JSON_SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


@st.composite
def changed(draw: st.DrawFn, valid: dict[str, Any]) -> dict[str, Any]:
    """A valid message in which a few fields, at any depth, have another value."""
    made: dict[str, Any] = _copied(valid)
    for _ in range(draw(st.integers(1, 4))):
        _change(draw, made)
    return made


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """Valid bytes of which a few are changed, lost, doubled or followed by others."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        what = draw(st.sampled_from(["change", "cut", "insert", "repeat"]))
        if what == "change" and data:
            data[at] = draw(st.integers(0, 255))
        elif what == "cut":
            del data[at : at + draw(st.integers(1, 40))]
        elif what == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=20))
        else:
            data[at:at] = bytes(data[at : at + 20]) * draw(st.integers(1, 200))
    return bytes(data)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _change(draw: st.DrawFn, value: Any) -> None:
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw(st.booleans()):
            value = inner
            continue
        if isinstance(value, dict) and draw(st.integers(0, 9)) == 0:
            del value[key]
        else:
            value[key] = draw(VALUES)
        return
