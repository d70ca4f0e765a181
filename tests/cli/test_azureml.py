"""Scripts of the Azure ML SDK v1 by the command line. What they do is tested in tests/azureml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.command_line import PROJECT, CommandLine

GIVEN = ["--help", "-f", "x", "--", "y", "--", "-z"]


def test_check_reads_scripts_without_running_them(trainhub: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "submit.py"
    script.write_text("from azureml.core import Workspace\nWorkspace.from_config()\nraise SystemExit(9)\n")
    checked = trainhub("azureml", "check", str(script))
    assert (checked.code, checked.err) == (0, "")
    assert "Works: Workspace.from_config (1)" in checked.out
    script.write_text("from azureml.pipeline.core import Pipeline\n")
    assert trainhub("azureml", "check", "--json", str(script)).code == 1


def test_run_gives_a_script_all_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "submit.py"
    script.write_text("import sys\nfrom azureml.core import Experiment\nprint(sys.argv[1:])\nsys.exit(7)\n")
    argv = [sys.executable, "-m", "trainhub_cli", "azureml", "run", str(script), *GIVEN]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{GIVEN}\n", "")
