"""The built-in examples as they lie there; that each of them trains is shown by test_training.py."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples.table import ONE_MACHINE, TWO_HOSTS, Training
from trainhub_launch.frameworks import FRAMEWORKS, framework_of
from trainhub_launch.spec import ExampleSource
from trainhub_launch.spec_reader import read_spec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/example.json"))


def described(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((EXAMPLES / name / "example.json").read_text())
    return data


@pytest.mark.parametrize("name", NAMES)
class TestEveryExample:
    def test_is_a_spec_that_starts_itself(self, name: str) -> None:
        spec = read_spec(described(name)["spec"])
        assert isinstance(spec.source, ExampleSource)
        assert framework_of(spec).name == described(name)["framework"]
        started = spec.script or next(word for word in spec.command if word.endswith(".py"))
        assert (EXAMPLES / spec.source.name / started).is_file()

    def test_says_in_a_sentence_what_it_shows(self, name: str) -> None:
        data = described(name)
        assert data["title"]
        assert data["sentence"].endswith(".")

    def test_explains_itself_to_whoever_reads_it(self, name: str) -> None:
        for script in (EXAMPLES / name).glob("*.py"):
            assert ast.get_docstring(ast.parse(script.read_text())), f"{script} has no docstring"


def test_there_is_one_for_every_framework() -> None:
    assert {described(name)["framework"] for name in NAMES} == set(FRAMEWORKS)


def test_the_same_script_trains_per_process_and_per_node() -> None:
    sources = {name: described(name)["spec"]["source"]["name"] for name in NAMES}
    assert sources["digits-ddp"] == sources["digits-torchrun"] == sources["digits-launch"]
    assert sources["transformers-tiny"] == sources["transformers-torchrun"]


def test_every_one_of_them_is_trained_by_a_test() -> None:
    assert {training.example for training in (*ONE_MACHINE, *TWO_HOSTS)} == set(NAMES)
    distributed = {name for name in NAMES if described(name)["framework"] != "single"}
    assert {training.example for training in TWO_HOSTS} == distributed


@pytest.mark.parametrize("training", [*ONE_MACHINE, *TWO_HOSTS], ids=lambda training: training.example)
def test_a_training_is_a_spec_as_the_hub_takes_it(training: Training) -> None:
    read_spec(training.spec())


def test_hello_needs_nothing_but_python(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", EXAMPLES / "hello" / "hello.py", "--seconds", "0.1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "step 10/10" in done.stdout
    assert json.loads((tmp_path / "outputs" / "model.json").read_text())["answer"] == 42
