"""The built-in examples as they lie there; that each of them trains is shown by tests/journeys."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainhub_launch.frameworks import FRAMEWORKS, framework_of
from trainhub_launch.spec import ExampleSource, RunSpec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/example.json"))


def described(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((EXAMPLES / name / "example.json").read_text())
    return data


@pytest.mark.parametrize("name", NAMES)
class TestEveryExample:
    def test_is_a_spec_that_starts_itself(self, name: str) -> None:
        spec = RunSpec.from_json(described(name)["spec"])
        assert spec.source == ExampleSource(name)
        assert framework_of(spec) == described(name)["framework"]
        assert (EXAMPLES / name / (spec.script or next(word for word in spec.command if word.endswith(".py")))).is_file()

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
    assert (EXAMPLES / "digits-ddp" / "train.py").read_bytes() == (EXAMPLES / "digits-torchrun" / "train.py").read_bytes()


def test_hello_needs_nothing_but_python(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", EXAMPLES / "hello" / "hello.py", "--seconds", "0.1"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )
    assert "step 10/10" in done.stdout
    assert json.loads((tmp_path / "outputs" / "model.json").read_text())["answer"] == 42
