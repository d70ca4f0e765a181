"""`make bench` runs every benchmark, and each says by its exit code whether it is within its limits."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.idle import scheduled_s
from bench.run_cost.flame_stacks import folded
from bench.support.limits import Limits

ROOT = Path(__file__).resolve().parents[1]
NOT_IN_MAKE_BENCH = {
    "azureml": "needs clones of public repositories",
    "checkpoints": "needs root, rclone, and 25 GB of disk",
    "comparison": "needs an older checkout",
    "data": "needs rclone, and 12 GB of disk",
    "environments": "needs root, and some GB of packages",
    "gpu_truth": "needs an NVIDIA GPU",
    "house": "measures the source, no speed",
    "peers": "needs root, and 8 GB of disk",
    "pictures": "makes the pictures of the documents",
    "slurm": "needs root, Slurm, and 20 minutes",
    "two_hosts": "needs root, and an sshd",
}


def scripts() -> dict[str, ast.FunctionDef]:
    """Returns the `main` of each script in bench/, by the name of the module."""
    return {
        path.parent.name if path.stem == "__main__" else path.stem: node
        for path in paths()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "main"
    }


def paths() -> list[Path]:
    """Returns the files of bench/ that can be started: modules, and the main modules of its folders."""
    return [*(ROOT / "bench").glob("*.py"), *(ROOT / "bench").glob("*/__main__.py")]


def test_make_bench_runs_every_script() -> None:
    loop = re.search(r"for name in ([\w ]+); do .*bench\.", (ROOT / "Makefile").read_text())
    assert loop is not None
    assert sorted(loop.group(1).split()) == sorted(scripts().keys() - NOT_IN_MAKE_BENCH)


@pytest.mark.parametrize("name", sorted(scripts().keys() - NOT_IN_MAKE_BENCH))
def test_every_script_judges_its_figures(name: str) -> None:
    (path,) = [path for path in paths() if name in (path.stem, path.parent.name)]
    text = path.read_text()
    if name == "runs":  # the process that measures judges
        text = (ROOT / "bench" / "support" / "search_process.py").read_text()
    assert "Limits()" in text or re.search(r"^\w*(RATIO|SHARE|HALF)\w*.* = ", text, re.M)
    assert "sys.exit(" in text or "raise SystemExit(" in text


def test_limits_are_kept_or_exceeded(capsys: pytest.CaptureFixture[str]) -> None:
    limits = Limits()
    limits.at_most("times", 1.5, 2)
    limits.at_least("rates", 0.5, 0.5)
    assert limits.exit_code() == 0
    limits.at_most("times", 2.01, 2)
    limits.at_least("rates", 0.49, 0.5)
    assert limits.exit_code() == 1
    assert "Past the limit: times 2.01, at most 2; rates 0.49, at least 0.5" in capsys.readouterr().out


def test_stacks_of_one_function_are_one_whatever_its_lines_and_thread() -> None:
    stacks = [
        "thread (7): a;Thread.run (threading.py:1);post (jobs/api/run.py:5);get (db/query.py:9) 2",
        "thread (8): b;Thread.run (threading.py:1);post (jobs/api/run.py:7);get (db/query.py:9) 3",
    ]
    assert folded(stacks) == {"post (jobs/api/run.py);get (db/query.py)": 5}


def test_the_time_of_threads_that_have_ended_counts() -> None:
    script = """
import threading, time

def work():
    while time.thread_time() < 0.2:
        pass

thread = threading.Thread(target=work)
thread.start()
thread.join()
print("ended", flush=True)
input()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ended\n"
        assert scheduled_s(process.pid) > 0.2
        process.communicate("\n")
    with pytest.raises(ProcessLookupError):
        scheduled_s(process.pid)
