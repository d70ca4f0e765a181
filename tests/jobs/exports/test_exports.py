"""Every spec has a form in each format. The files of `golden/` were read by the launchers' own parsers
(`foreign_parsers.py` names them, with their versions) and, for bash, by `bash -n`.

REWRITE_GOLDEN=1 pytest tests/jobs/exports writes them again; read them by those parsers then."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from jobs.exports import FORMATS, export_spec
from jobs.exports.export import SpecExport
from jobs.exports.spec_comment import find_comment
from tests.jobs.exports.specs import GOLDEN_SPECS, all_specs
from tests.launch.test_spec import specs
from tests.wizard.specs import SNAPSHOT
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec

GOLDEN = Path(__file__).with_name("golden")
SCRIPTS = (".sh", ".sbatch")


def export_or_refusal(spec: RunSpec, to: str) -> SpecExport | None:
    """None for a spec that no placement could run."""
    try:
        return export_spec(spec, to)
    except SpecError as error:
        if error.field in ("distribution.process_count", "resources.node_count", "distribution"):
            return None
        raise


def shell_texts(to: str, text: str) -> list[str]:
    """The lines of bash in an exported file."""
    if to in ("sbatch", "commands"):
        return [text]
    if to == "torchx":
        module = ast.parse(text)
        values = [node.value for node in module.body if isinstance(node, ast.Assign)]
        return ["\n".join(ast.literal_eval(values[0]))]
    data: Any = yaml.safe_load(text)
    if to == "trainjob":
        # As Kubernetes gives it to the container.
        return [data["spec"]["trainer"]["args"][0].replace("$$", "$")]
    return [data[{"azureml": "command", "skypilot": "run"}[to]] if to != "dstack" else data["commands"][0]]


def check_syntax(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{script}"


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", GOLDEN_SPECS)
def test_the_files_are_those_that_foreign_parsers_have_read(name: str, to: str) -> None:
    export = export_spec(GOLDEN_SPECS[name], to)
    notes = "".join(f"{note.field}: {note.outcome.value}: {note.message}\n" for note in export.notes)
    folder = GOLDEN / name / to
    for file, text in {**export.files, "notes": notes}.items():
        if os.environ.get("REWRITE_GOLDEN"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{file}.txt").write_text(text)
        assert (folder / f"{file}.txt").read_text() == text


@pytest.mark.parametrize(("name", "spec"), list(all_specs()))
def test_all_scripts_are_correct_bash(name: str, spec: RunSpec) -> None:
    for to in FORMATS:
        for text in export_spec(spec, to).files.values():
            for script in shell_texts(to, text):
                check_syntax(script)


@pytest.mark.parametrize("to", FORMATS)
@given(specs)
def test_no_text_of_a_person_breaks_out_of_its_place(to: str, spec: RunSpec) -> None:
    export = export_or_refusal(spec, to)
    if export is None:
        return
    for text in export.files.values():
        comment = find_comment(text)
        assert comment is not None
        assert json.loads(comment[1]) == spec.to_json()
        assert "\x00" not in text
        if to == "sbatch":
            options = [line for line in text.split("\n") if line.startswith("#SBATCH")]
            assert options == text.split("\n")[1 : 1 + len(options)]
            names = [option.split("=")[0].split(" --")[1] for option in options]
            assert len(set(names)) == len(names)
        elif to in ("azureml", "skypilot", "dstack", "trainjob"):
            check_variables(to, yaml.safe_load(text), spec)
        for script in shell_texts(to, text):
            assert script.startswith(("#!", "set -eu"))


def check_variables(to: str, data: Any, spec: RunSpec) -> None:
    plain = {name: item.value for name, item in spec.environment_variables.items() if item.secret is None}
    if to == "azureml":
        assert data.get("environment_variables", {}) == plain
        assert data.get("tags", {}) == dict(spec.tags)
        assert data.get("display_name", "") == spec.display_name
    elif to == "skypilot":
        assert data.get("envs", {}) == plain
    elif to == "dstack":
        assert {name: data.get("env", {})[name].replace("$$", "$") for name in plain} == plain


@pytest.mark.parametrize("to", FORMATS)
def test_what_a_format_cannot_hold_is_a_note(to: str) -> None:
    spec = GOLDEN_SPECS["full"]
    fields = {note.field.split(".")[0] for note in export_spec(spec, to).notes}
    assert {"source", "environment", "environment_variables", "inputs", "checkpoint", "outputs"} <= fields
    assert "priority" in fields
    texts = list(export_spec(spec, to).files.values())
    assert all(note.message for note in export_spec(spec, to).notes)
    assert all("TrainHub-PyTorch-2.13" in text for text in texts)


def test_commands_for_many_nodes_have_a_limit() -> None:
    spec = {
        "source": SNAPSHOT,
        "script": "train.py",
        "arguments": ["x" * 100_000],
        "distribution": {"type": "pytorch", "node_count": 1024},
    }
    with pytest.raises(SpecError) as raised:
        export_spec(read_spec(spec), "commands")
    assert "16 MiB" in raised.value.message


def test_another_format_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(SpecError) as raised:
        export_spec(GOLDEN_SPECS["full"], "pbs")
    assert raised.value.field == "to"
    assert "sbatch or commands or azureml" in raised.value.message
