from __future__ import annotations

import json
from typing import Any

import pytest

from registry.exports.reports import LONGEST, MAX_ITEMS, read
from tests.registry.exporting.builders import FOUND


def test_what_the_script_writes_is_kept() -> None:
    assert {name: value for name, value in read(json.dumps(FOUND).encode()).items() if name in FOUND} == FOUND


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{", b"[" * 100_000, b'"x"'])
def test_what_is_no_report_is_none(data: bytes) -> None:
    assert read(data) == {}


@pytest.mark.parametrize(
    "told",
    [
        {"differences": "none"},
        {"differences": [3, {"output": ["x"], "max_absolute": "big", "within": "yes"}]},
        {"inputs": [{"shape": 3}]},
        {"versions": [1]},
        {"tolerance": {"relative": True}},
        {"refusal": 7},
        {"opset": "20"},
        {"dynamic": {"x": {"0": 3}}},
        {"batches": [1]},
        {"sizes": {"a": "b"}},
    ],
)
def test_what_is_of_another_shape_is_left_out(told: dict[str, Any]) -> None:
    found = read(json.dumps(told).encode())
    assert not found.get("refusal")
    assert all(item["within"] is False for item in found["differences"])
    assert not any((found["versions"], found["tolerance"], found["batches"], found["sizes"]))


def test_it_is_bounded_whatever_a_job_writes() -> None:
    found = read(json.dumps({"refusal": "x\x00" * 9000, "differences": [{"output": "y"}] * 9000}).encode())
    assert len(found["refusal"]) <= LONGEST
    assert "\x00" not in found["refusal"]
    assert len(found["differences"]) == MAX_ITEMS
