"""`manage.py submit SPEC.json --wait`: prints the log, exits with the run's outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hub import Hub

pytestmark = pytest.mark.slow


def spec_file(folder: Path, text: str, **more: object) -> str:
    (folder / "code").mkdir()
    (folder / "code" / "main.py").write_text(text)
    spec = {"source": {"type": "local", "path": "./code"}, "script": "main.py", **more}
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    return str(path)


def test_an_example_runs_to_its_end(hub: Hub) -> None:
    done = hub.manage("submit", "examples/hello/example.json", "--wait")
    assert done.returncode == 0
    assert "Completed" in done.stdout + done.stderr


def test_both_ranks_are_heard(hub: Hub, tmp_path: Path) -> None:
    ranks = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 1}
    spec = spec_file(tmp_path, "import os; print('I am', os.environ['RANK'])", distribution=ranks)
    done = hub.manage("submit", spec, "--wait")
    assert done.returncode == 0
    assert "I am 0" in done.stdout
    assert "I am 1" in done.stdout


def test_a_failed_run_fails_the_command(hub: Hub, tmp_path: Path) -> None:
    done = hub.manage(
        "submit", spec_file(tmp_path, "print('before'); raise SystemExit(3)"), "--wait", check=False
    )
    assert done.returncode == 1
    assert "before" in done.stdout
    assert "exited with code 3" in done.stdout + done.stderr


def test_a_bad_spec_names_the_field_and_starts_nothing(hub: Hub, tmp_path: Path) -> None:
    done = hub.manage(
        "submit", spec_file(tmp_path, "", resources={"gpus_per_node": 999}), "--wait", check=False
    )
    assert done.returncode == 2
    assert "resources.gpus_per_node:" in done.stderr
