"""The data that a run reads: in its spec, and in the variables of its processes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.launch.builders import make_placement
from trainhub_launch.errors import SpecError
from trainhub_launch.machine import INPUTS
from trainhub_launch.plan import Reference
from trainhub_launch.planner import plan
from trainhub_launch.planner.draft import draft_plan
from trainhub_launch.spec_reader import read_spec

BIRDS: dict[str, Any] = {"datastore": "images", "path": "birds/2024"}


def with_inputs(**inputs: Any) -> dict[str, Any]:
    return {"source": {"type": "snapshot", "id": "5f" * 32}, "script": "train.py", "inputs": inputs}


def test_processes_find_each_under_two_names() -> None:
    spec = read_spec(with_inputs(birds=BIRDS, all_images={"datastore": "images"}))
    (process,) = plan(spec, make_placement()).processes
    birds, images = Reference("launch", "input_birds"), Reference("launch", "input_all_images")
    assert {name: value for name, value in process.env.items() if "INPUT" in name or "AZUREML_D" in name} == {
        "TRAINHUB_INPUT_BIRDS": birds,
        "AZUREML_DATAREFERENCE_birds": birds,
        "TRAINHUB_INPUT_ALL_IMAGES": images,
        "AZUREML_DATAREFERENCE_all_images": images,
    }


def test_only_nodes_that_know_of_inputs_get_such_runs() -> None:
    assert draft_plan(read_spec(with_inputs(birds=BIRDS)), ()).demand.capabilities == {INPUTS}
    assert draft_plan(read_spec(with_inputs()), ()).demand.capabilities == frozenset()


def test_a_spec_without_any_looks_as_before() -> None:
    assert "inputs" not in read_spec(with_inputs()).to_json()


@pytest.mark.parametrize(
    ("inputs", "field", "words"),
    [
        ({"2birds": BIRDS}, "inputs", "is no name of an input"),
        ({"birds-1": BIRDS}, "inputs", "is no name of an input"),
        ({"b" * 64: BIRDS}, "inputs", "is no name of an input"),
        ({"birds": BIRDS, "Birds": BIRDS}, "inputs.Birds", "both become TRAINHUB_INPUT_BIRDS"),
        ({"birds": {}}, "inputs.birds.datastore", "required"),
        ({"birds": {**BIRDS, "dataset": "birds"}}, "inputs.birds.datastore", "not both"),
        ({"birds": {"dataset": "birds", "path": "a"}}, "inputs.birds.path", "is read as a whole"),
        ({"birds": {**BIRDS, "version": 3}}, "inputs.birds.version", "stands without dataset"),
        ({"birds": {"dataset": "birds", "version": 0}}, "inputs.birds.version", "between 1"),
        ({"birds": {"dataset": "birds", "version": "3"}}, "inputs.birds.version", "whole number"),
        ({"birds": "images"}, "inputs.birds", "object"),
        (
            {"birds": {**BIRDS, "mode": "copy"}},
            "inputs.birds.mode",
            "'copy' is no mode; use 'mount' or 'download'",
        ),
        ({"birds": {**BIRDS, "kind": "x"}}, "inputs.birds.kind", ""),
        ({"birds": {**BIRDS, "path": "../etc"}}, "inputs.birds.path", "without '..'"),
        ({"birds": {**BIRDS, "path": "/etc"}}, "inputs.birds.path", "without a slash at its beginning"),
        ({"birds": {**BIRDS, "path": "a//b"}}, "inputs.birds.path", "no path below the datastore"),
        ({"birds": {**BIRDS, "path": "a\nb"}}, "inputs.birds.path", "no path below the datastore"),
        ({"birds": {**BIRDS, "path": "a" * 1025}}, "inputs.birds.path", "1024"),
        ({f"i{number}": BIRDS for number in range(51)}, "inputs", "at most 50"),
    ],
)
def test_a_wrong_one_is_refused_at_its_field(inputs: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(SpecError) as raised:
        read_spec(with_inputs(**inputs))
    assert raised.value.field == field
    assert words in raised.value.message


def test_that_is_no_object_is_refused() -> None:
    with pytest.raises(SpecError, match="must be a JSON object"):
        read_spec({**with_inputs(), "inputs": ["birds"]})
