"""export and import on the command line, for a hub that answers as written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.sdk.scripted_hub import Reply, ScriptedHub, problem

Scripted = tuple[ScriptedHub, str]
NOTE = {"line": None, "field": "source", "what": "no counterpart", "message": "the code is not in the file"}
SPEC = {"script": "train.py", "source": {"type": "example", "name": "hello"}}


def answers(scripted: Scripted, *bodies: object) -> None:
    scripted[0].replies = [Reply(body=json.dumps(body).encode()) for body in bodies]


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC))
    return path


class TestExport:
    def test_a_file_goes_to_standard_output_and_notes_do_not(
        self, scripted: Scripted, trainhub: CommandLine, spec_file: Path
    ) -> None:
        answers(scripted, {"files": {"run.sbatch": "#!/bin/bash\nsrun x\n"}, "notes": [NOTE]})
        done = trainhub("export", str(spec_file), "--to", "sbatch")
        assert (done.code, done.out) == (0, "#!/bin/bash\nsrun x\n")
        assert done.err == "source: no counterpart: the code is not in the file\n"
        (request,) = scripted[0].requests
        assert request.path == "/api/v1/specs/export/"
        assert json.loads(request.body) == {"spec": SPEC, "to": "sbatch"}

    def test_files_go_into_a_folder(
        self, scripted: Scripted, trainhub: CommandLine, spec_file: Path, tmp_path: Path
    ) -> None:
        answers(scripted, {"files": {"node_0.sh": "zero\n", "node_1.sh": "one\n"}, "notes": []})
        done = trainhub("export", str(spec_file), "--to", "commands", "--output", str(tmp_path / "new"))
        assert (done.code, done.out) == (0, "")
        assert (tmp_path / "new" / "node_1.sh").read_text() == "one\n"

    def test_a_run_is_exported_by_its_number(self, scripted: Scripted, trainhub: CommandLine) -> None:
        run = {"id": "a" * 32, "number": 12, "spec": SPEC}
        answers(scripted, run, {"files": {"a": "x", "b": "y"}, "notes": []})
        done = trainhub("export", "12", "--to", "commands")
        assert done.out == "==> a <==\nx\n==> b <==\ny\n"

    def test_a_hub_cannot_write_elsewhere(
        self, scripted: Scripted, trainhub: CommandLine, spec_file: Path, tmp_path: Path
    ) -> None:
        answers(scripted, {"files": {"../evil": "x"}, "notes": []})
        done = trainhub("export", str(spec_file), "--to", "sbatch", "--output", str(tmp_path / "new"))
        assert done.code == 2
        assert not (tmp_path / "evil").exists()

    def test_a_refusal_names_the_field(
        self, scripted: Scripted, trainhub: CommandLine, spec_file: Path
    ) -> None:
        errors = [{"field": "to", "message": "'pbs' is no format; use sbatch"}]
        scripted[0].replies = [problem(400, detail="to", errors=errors)]
        done = trainhub("export", str(spec_file), "--to", "pbs")
        assert (done.code, done.err) == (2, "to: 'pbs' is no format; use sbatch\n")


class TestImport:
    def test_a_spec_is_written_and_notes_are_said(
        self, scripted: Scripted, trainhub: CommandLine, tmp_path: Path
    ) -> None:
        (tmp_path / "train.sbatch").write_text("#!/bin/bash\nsrun python train.py\n")
        answers(scripted, {"spec": {"script": "train.py"}, "notes": [{**NOTE, "line": 2}]})
        output = tmp_path / "out.json"
        done = trainhub("import", str(tmp_path / "train.sbatch"), "--from", "sbatch", "--output", str(output))
        assert (done.code, done.out) == (0, "")
        assert done.err.startswith("line 2: source: no counterpart: ")
        assert json.loads(output.read_text()) == {"script": "train.py"}

    def test_a_file_that_is_not_there(self, trainhub: CommandLine, tmp_path: Path) -> None:
        done = trainhub("import", str(tmp_path / "none"), "--from", "sbatch")
        assert done.code == 2
        assert "cannot be read" in done.err

    def test_an_experiment_of_determined_is_read_beside_its_code(
        self, scripted: Scripted, trainhub: CommandLine, tmp_path: Path
    ) -> None:
        answers(scripted, {"results": [], "next": None})
        (tmp_path / "const.yaml").write_text(
            "name: birds\nentrypoint: python3 train.py\nresources: {slots_per_trial: 0}\n"
            "searcher: {name: single, metric: loss, max_length: 1}\nhyperparameters: {lr: 0.1}\n"
        )
        (tmp_path / "train.py").write_text("")
        output = tmp_path / "spec.json"
        done = trainhub(
            "import", str(tmp_path / "const.yaml"), "--from", "determined", "--output", str(output)
        )
        assert done.code == 0, done.err
        assert json.loads(output.read_text())["script"] == "train.py"
        assert (tmp_path / "trainhub_determined.pyz").is_file()
        assert all(request.method == "GET" for request in scripted[0].requests)
