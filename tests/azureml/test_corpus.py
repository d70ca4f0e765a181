"""The benchmark of public scripts: what belongs to its corpus, and how it judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.azureml import process
from bench.azureml.corpus import OTHER, SCRIPT, kind_of, load_files, load_repositories, to_python
from bench.azureml.judgement import differences, load_expectations, read_dry_run
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.workspace import Workspace

SUBMIT = (
    "from azureml.core import Experiment, ScriptRunConfig\nExperiment(1, 'e').submit(ScriptRunConfig())\n"
)
SPEC = {
    "experiment": "e",
    "script": "train.py",
    "arguments": ["--data", "$TRAINHUB_INPUT_x", "--epochs", "3"],
    "environment": {"name": "pip-1"},
    "distribution": {"type": "mpi", "process_count_per_node": 4, "node_count": 2},
}
BODY = {"kind": "pip", "requirements": ["torch==2.0", "mlflow-skinny"]}
EXPECTED = {
    "experiment": "e",
    "script": "train.py",
    "arguments": ["--data", "*", "--epochs", "3"],
    "distribution": ["mpi", 2, 8],
    "environment": ["packages", ["mlflow-skinny", "torch"]],
}


def printed(spec: dict[str, Any], body: dict[str, Any] | None = None) -> str:
    text = "{'a': 1}\n{broken\n" + json.dumps(spec, indent=2)
    return text if body is None else f"{text}\n# The environment:\n{json.dumps(body, indent=2)}\nthe plan\n"


class TestCorpus:
    def test_each_file_is_named_once_with_a_commit_of_its_repository(self) -> None:
        commits = {(row.name, commit) for row in load_repositories() for commit in row.commits}
        files = load_files()
        assert {(file.repository, file.commit) for file in files} <= commits
        assert len({(file.repository, file.path) for file in files}) == len(files)
        assert sum(file.kind == SCRIPT for file in files) >= 100

    def test_there_is_an_expectation_for_scripts_alone(self) -> None:
        assert load_expectations().keys() <= {file.key for file in load_files() if file.kind == SCRIPT}

    @pytest.mark.parametrize(
        ("source", "kind"),
        [
            (SUBMIT, SCRIPT),
            (f"from azureml.train.automl import AutoMLConfig\n{SUBMIT}", OTHER),
            ("from azureml.core import Experiment\nExperiment(1, 'e').submit(1)\n", OTHER),
            ("from azureml.core import Run\ndef f(run):\n    run.submit(1)\n", ""),
            ("print(1).submit(ScriptRunConfig())\n", ""),
            ("this is not Python", ""),
        ],
    )
    def test_the_kind_of_a_file(self, source: str, kind: str) -> None:
        assert kind_of(source) == kind

    def test_a_notebook_becomes_a_script(self) -> None:
        cells = ["%matplotlib inline\nx = 1", "%%writefile $folder/{name}.py\nprint(1)", "%%bash\nls", "f("]
        notebook = {"cells": [{"cell_type": "code", "source": source} for source in cells]}
        assert to_python("a.ipynb", json.dumps(notebook).encode()) == (
            "pass\nx = 1\n"
            "with open(''+str(folder)+'/'+str(name)+'.py', 'w') as _file: _file.write('print(1)')\n"
        )


class TestVerdicts:
    def test_the_spec_of_a_dry_run_is_read_among_other_output(self) -> None:
        run = read_dry_run(printed(SPEC, BODY))
        assert run is not None
        assert (run.spec, run.environment_body) == (SPEC, BODY)
        assert read_dry_run("{}\nnothing\n") is None

    def test_a_spec_that_means_the_same_is_right(self) -> None:
        run = read_dry_run(printed(SPEC, BODY))
        assert run is not None
        assert differences(EXPECTED, run) == []

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("experiment", "f"),
            ("script", "x.py"),
            ("arguments", ["--data", "*"]),
            ("distribution", ["pytorch", 2, 8]),
            ("environment", ["node"]),
        ],
    )
    def test_each_field_counts(self, field: str, value: object) -> None:
        run = read_dry_run(printed(SPEC, BODY))
        assert run is not None
        assert [text.partition(":")[0] for text in differences({**EXPECTED, field: value}, run)] == [field]

    @pytest.mark.parametrize(
        ("command", "argv"),
        [
            ("python a.py --x *", ["python", "a.py", "--x", "$DATA"]),
            ("pip install . && python a.py $RANK", ["bash", "-c", "pip install . && python a.py $$RANK"]),
        ],
    )
    def test_commands_are_compared_as_a_shell_reads_them(self, command: str, argv: list[str]) -> None:
        spec = {"experiment": "e", "command": argv, "environment": {"name": "system"}}
        expected = {"experiment": "e", "script": "", "distribution": ["", 1, 1], "environment": ["node"]}
        run = read_dry_run(printed(spec))
        assert run is not None
        assert differences({**expected, "command": command}, run) == []
        assert differences({**expected, "command": "python b.py"}, run) != []

    def test_an_exception_is_ours_unless_it_is_a_sentence_or_the_scripts_own(self) -> None:
        attribute = AttributeError("x", obj=object.__new__(Workspace))
        assert process.kind_of(attribute, "/x/submit.py") == process.OURS
        assert process.kind_of(AttributeError("x", obj=[]), "/x/submit.py") == process.FOREIGN
        assert process.kind_of(KeyError("x"), "/y/trainhub_azureml/run.py") == process.OURS
        assert process.kind_of(UserErrorException("x"), "/y/trainhub_azureml/run.py") == process.REFUSED
        assert process.kind_of(ImportError("azureml.x: no."), "/y/azureml/x.py") == process.REFUSED
        assert process.kind_of(ImportError("No module named 'x'"), "/x/submit.py") == process.FOREIGN
        wrong_call = TypeError("Workspace.get() got an unexpected keyword argument 'x'")
        assert process.kind_of(wrong_call, "/x/submit.py") == process.OURS
