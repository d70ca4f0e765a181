"""A run with `--reruns` names the tests that needed their second try."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub import PROJECT

TESTS = """
tries = []

def test_steady():
    pass

def test_lucky_the_second_time():
    tries.append(1)
    assert len(tries) == 2, "not yet"

def test_hopeless():
    assert False

def test_fails_otherwise_the_second_time():
    tries.append("another")
    assert tries.count("another") == 2, "what was first"
    raise FileExistsError("what is left of it")
"""


def output(folder: Path, *options: str) -> str:
    (folder / "test_some.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
        "-p",
        "tests.harness.flaky",
    ]
    command += ["-p", "no:django", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_test_that_passes_only_at_its_second_try_is_a_fault_in_a_list(tmp_path: Path, workers: str) -> None:
    text = output(tmp_path, "--reruns", "1", "-n", workers)
    title, _, rest = text.partition("FLAKY: 1 test needed a second try")
    assert title, text
    shown = r"test_some.py::test_lucky_the_second_time  \(call: AssertionError: not yet: .*AssertionError\)$"
    assert re.search(f"^{shown}", rest, re.M), text
    assert re.search(f"^FIRST TRY {shown}", title, re.M), text
    assert re.search(r"^FIRST TRY test_some.py::test_hopeless  \(call: assert False: ", title, re.M), text
    assert "test_hopeless  (" not in rest
    assert "test_steady  (" not in rest
    assert rest.strip().splitlines()[-1].count("2 failed, 2 passed, 3 rerun"), text


def test_a_test_that_fails_twice_in_two_ways_shows_both(tmp_path: Path) -> None:
    text = output(tmp_path, "--reruns", "1", "-k", "hopeless or otherwise")
    assert "First try of test_some.py::test_fails_otherwise_the_second_time" in text
    assert "AssertionError: what was first" in text
    assert "FileExistsError: what is left of it" in text
    assert "First try of test_some.py::test_hopeless" not in text


def test_a_run_without_such_a_test_says_so(tmp_path: Path) -> None:
    text = output(tmp_path, "--reruns", "1", "-k", "steady")
    assert "FLAKY: no test needed a second try" in text
    assert "FLAKY" not in output(tmp_path, "-k", "steady")
