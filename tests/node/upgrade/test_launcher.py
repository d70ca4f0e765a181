"""The start of an agent that has other programs: real processes, with small programs in place of agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.hub import PROJECT, eventually
from trainhub_node.upgrade.installation import package_identity
from trainhub_node.upgrade.program_record import ProgramRecord, read_record, write_record

LAUNCHER = """
import logging, pathlib, sys
logging.basicConfig(level="INFO")
from trainhub_node.upgrade import launcher, program_trial
program_trial.TRIAL_S = 2.0
launcher.enter_program(pathlib.Path(sys.argv[1]), "self")
print("the installed package runs", flush=True)
"""
# As an agent does when the hub has answered its first report.
GOOD = """
import json, os, pathlib, signal, sys, time
record = pathlib.Path(sys.argv[1], "programs/record.json")
data = json.loads(record.read_text())
print("started", "on trial" if data["trial"] else "for good", os.environ["PYTHONPATH"], flush=True)
if data["trial"]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    aside = record.with_name("aside")
    aside.write_text(json.dumps({**data, "current": data["trial"], "trial": "", "outcome": "done"}))
    aside.chmod(0o600)
    aside.replace(record)
    time.sleep(60)
"""
DIES = "import sys; print('out of luck', file=sys.stderr); sys.exit(3)"
HANGS = "import time; print('hanging', flush=True); time.sleep(60)"
CRASHES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "programs").mkdir(mode=0o755)
    return tmp_path


def program(folder: Path, name: str, code: str) -> None:
    package = folder / "programs" / name / "trainhub_node"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(code)


def record(folder: Path, **fields: object) -> None:
    empty = ProgramRecord(installed=installed(folder), order=1)
    write_record(folder / "programs", replace(empty, **fields))  # type: ignore[arg-type]


def installed(folder: Path) -> str:
    assert folder.is_dir()
    return package_identity()


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd="/",
    )


def launched(folder: Path) -> tuple[str, str]:
    done = start(folder)
    printed, errors = done.communicate(timeout=60)
    return printed, errors


def test_without_another_program_the_installed_package_runs(folder: Path) -> None:
    assert launched(folder)[0] == "the installed package runs\n"


def test_the_chosen_program_runs_in_the_same_process(folder: Path) -> None:
    program(folder, "2.0-a", "import os; print(os.getpid())")
    record(folder, current="2.0-a")
    process = start(folder)
    assert process.communicate(timeout=60)[0] == f"{process.pid}\n"


def test_a_program_that_reports_is_chosen_and_started_without_a_launcher_above_it(folder: Path) -> None:
    program(folder, "2.0-a", GOOD)
    record(folder, trial="2.0-a")
    printed, _ = launched(folder)
    path = f"{folder}/programs/2.0-a:{PROJECT}"
    assert printed == f"started on trial {path}\nstarted for good {path}\n"
    kept = read_record(folder / "programs")
    assert (kept.current, kept.trial, kept.outcome) == ("2.0-a", "", "done")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (DIES, "3.0-b ended with code 3. Its last line: out of luck"),
        (HANGS, "3.0-b did not report to the hub within 2 s."),
        (CRASHES, "3.0-b was ended by signal 9."),
    ],
)
@pytest.mark.parametrize("before", ["", "2.0-a"])
def test_the_program_of_before_goes_on_after_a_failure(
    folder: Path, code: str, why: str, before: str
) -> None:
    program(folder, "2.0-a", "print('2.0 runs')")
    program(folder, "3.0-b", code)
    record(folder, current=before, trial="3.0-b")
    printed, errors = launched(folder)
    assert printed.splitlines()[-1] == ("2.0 runs" if before else "the installed package runs")
    kept = read_record(folder / "programs")
    assert (kept.current, kept.trial, kept.outcome, kept.is_reported) == (before, "", "failed", False)
    assert kept.why == why
    assert why in errors


def test_a_program_that_is_not_whole_is_not_tried(folder: Path) -> None:
    (folder / "programs/3.0-b").mkdir()
    record(folder, trial="3.0-b")
    assert launched(folder)[0] == "the installed package runs\n"
    assert read_record(folder / "programs").why == "3.0-b is not whole."


def test_a_launcher_that_is_killed_takes_the_trial_with_it_and_the_second_time_is_the_last(
    folder: Path,
) -> None:
    pid_file = folder / "pid"
    note = f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))"
    program(folder, "3.0-b", f"import os, pathlib, time; {note}; time.sleep(60)")
    record(folder, trial="3.0-b")
    for starts in (1, 2):
        process = start(folder)
        pid = eventually(lambda: int(pid_file.read_text() or 0) if pid_file.exists() else 0, 30)
        process.kill()
        process.wait()
        eventually(partial(_is_over, pid), 10, "the trial ends with its launcher")
        assert read_record(folder / "programs").starts == starts
        pid_file.unlink()
    assert launched(folder)[0] == "the installed package runs\n"
    assert "was started 2 times" in read_record(folder / "programs").why


def test_a_launcher_that_is_stopped_stops_the_trial_and_decides_nothing(folder: Path) -> None:
    program(folder, "3.0-b", HANGS)
    record(folder, trial="3.0-b")
    process = start(folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "hanging\n"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    kept = read_record(folder / "programs")
    assert (kept.trial, kept.outcome) == ("3.0-b", "")


def test_a_package_that_was_installed_by_hand_since_then_wins(folder: Path) -> None:
    program(folder, "2.0-a", "print('2.0 runs')")
    record(folder, current="2.0-a", installed="another one")
    printed, errors = launched(folder)
    assert printed == "the installed package runs\n"
    assert "Another package was installed" in errors
    assert read_record(folder / "programs").current == ""


def test_programs_that_others_could_write_do_not_run(folder: Path) -> None:
    program(folder, "2.0-a", "print('2.0 runs')")
    record(folder, current="2.0-a")
    (folder / "programs").chmod(0o777)
    assert launched(folder)[0] == "the installed package runs\n"


@pytest.mark.parametrize("text", ["", "{", json.dumps({"current": "gone", "installed": package_identity()})])
def test_a_damaged_record_or_program_leaves_the_installed_package(folder: Path, text: str) -> None:
    (folder / "programs/record.json").write_text(text)
    (folder / "programs/record.json").chmod(0o600)
    assert launched(folder)[0] == "the installed package runs\n"


def _is_over(pid: int) -> bool:
    try:
        return b") Z" in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
