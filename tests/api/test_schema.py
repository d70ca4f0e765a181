from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from jobs.api.schema import RUN_SPEC
from jobs.sources.snapshots import examples
from tests.api import contract
from trainhub_launch.spec_reader import read_spec


def test_the_openapi_schema_is_valid_and_complete() -> None:
    GENERATOR_STATS.reset()
    generator: Any = SchemaGenerator
    schema = generator().get_schema(request=None, public=True)
    # A library of it builds its grammars for seconds: only the process that needs it pays for it.
    from openapi_spec_validator import validate

    check: Any = validate_schema
    check(schema)
    validate(schema)
    assert not GENERATOR_STATS
    assert {"/api/v1/runs/", "/api/v1/runs/{run}/cancel/", "/api/v1/snapshots/"} <= set(schema["paths"])


def test_every_operation_declares_its_refusals_as_problems() -> None:
    for path, operations in contract.document()["paths"].items():
        for method, operation in operations.items():
            refusals = {
                status: answer for status, answer in operation["responses"].items() if status >= "400"
            }
            assert {"401", "403", "404"} <= set(refusals), f"{method} {path}"
            assert all("application/problem+json" in answer["content"] for answer in refusals.values()), (
                f"{method} {path}"
            )


def test_is_served(viewer_api: Client) -> None:
    assert b"operationId: runs_list" in viewer_api.get("/api/v1/schema/").content


class TestRunSpecSchema:
    SCHEMA: dict[str, Any] = RUN_SPEC["application/json"]

    def test_knows_exactly_the_fields_of_a_spec(self) -> None:
        # Limits, inputs, outputs, and checkpoints other than the default, stand in a spec only if set.
        checkpoint = {"keep": 5, "path": "mine", "resume_from": "0" * 32, "number": 1}
        checkpoint |= {"datastore": "results", "datastore_path": "birds"}
        inputs = {"birds": {"datastore": "images", "path": "birds"}}
        limited = {
            "resources": {"memory": "1GiB", "cpus": 1, "disk": "1GiB"},
            "checkpoint": checkpoint,
            "inputs": inputs,
            "outputs": {"datastore": "results", "path": "birds"},
        }
        source = {"source": {"type": "example", "name": "x"}, "script": "train.py"}
        written = read_spec(source | limited).to_json()
        assert set(self.SCHEMA["properties"]) == set(written)
        for part in ("resources", "environment", "limits", "checkpoint", "outputs"):
            assert set(self.SCHEMA["properties"][part]["properties"]) == set(written[part])

    def test_its_example_is_a_spec(self) -> None:
        assert read_spec(self.SCHEMA["example"]).script == "train.py"

    @pytest.mark.parametrize("name", [example.name for example in examples()])
    def test_takes_every_example(self, name: str) -> None:
        from jsonschema import Draft202012Validator

        spec = next(example.spec for example in examples() if example.name == name)
        Draft202012Validator(self.SCHEMA).validate(spec)
