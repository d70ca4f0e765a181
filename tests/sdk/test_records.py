"""The records and the list of fields are those of the hub's OpenAPI document, and the reference of the SDK is
that of its docstrings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from jobs.api.schema import RUN_SPEC
from trainhub_sdk.records.runs import RunRecord
from trainhub_sdk.spec_fields import FIELDS

PROJECT = Path(__file__).resolve().parents[2]


def generator(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, PROJECT / f"packaging/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_records_are_as_they_are_written_from_the_document() -> None:
    """Otherwise: .venv/bin/python packaging/make_sdk_records.py"""
    for name, text in generator("make_sdk_records").modules().items():
        assert (PROJECT / f"trainhub_sdk/records/{name}.py").read_text() == text, name


def test_the_reference_is_as_it_is_written_from_the_docstrings() -> None:
    """Otherwise: .venv/bin/python packaging/make_sdk_reference.py"""
    text = generator("make_sdk_reference").reference()
    assert (PROJECT / "docs/sdk-reference.md").read_text() == text


def test_records_take_what_they_know_and_have_defaults_for_the_rest() -> None:
    record = RunRecord.from_json(
        {"number": 7, "of_a_newer_hub": 1, "cause": {"line": "x", "others": [{"rank": 2}]}}
    )
    assert (record.number, record.state, record.attempts) == (7, "", [])
    assert record.cause is not None
    assert record.cause.others[0].rank == 2
    assert record.json["of_a_newer_hub"] == 1


def test_the_fields_of_a_spec_are_those_of_the_hub() -> None:
    spec: Any = RUN_SPEC["application/json"]
    properties = spec["properties"]
    assert set(FIELDS) == set(properties)
    for name, fields in FIELDS.items():
        if fields:
            assert set(fields) == field_names(properties[name]), name


def field_names(schema: dict[str, Any]) -> set[str]:
    choices = [schema, *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    return {name for choice in choices for name in choice.get("properties", ())}
