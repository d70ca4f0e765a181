"""Records which lines of the product a process executes, and adds up what all processes have recorded."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from slipcover import FileMatcher, ImportManager, Slipcover, merge_coverage

PROJECT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "clusters",
    "environments",
    "datastores",
    "jobs",
    "live",
    "registry",
    "simulator",
    "tracking",
    "trainhub",
    "trainhub_launch",
    "trainhub_node",
    "workspaces",
)
SOURCES = [PROJECT / package for package in PACKAGES]
# The folder that all processes of a test run write into. Nothing is recorded without it.
FOLDER_VARIABLE = "TRAINHUB_TEST_COVERAGE"
PREFIX = "process-"
SITE = Path(__file__).with_name("site")


def start(folder: Path) -> Callable[[], None]:
    """Records what this process imports from now on, and writes it into `folder` when the process ends.
    Returns a function that writes it earlier, too."""
    recorder = Slipcover()
    path = folder / f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}.json"
    write = partial(_write, recorder, path, os.getpid())
    # Never left: it instruments modules until the process ends.
    ImportManager(recorder, FileMatcher(sources=SOURCES)).__enter__()
    atexit.register(write)
    return write


def environment() -> dict[str, str]:
    """Returns the variables by which a Python process, and those that it starts, record themselves; none if
    nothing is recorded."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return {}
    return {FOLDER_VARIABLE: folder, "PYTHONPATH": f"{SITE}{os.pathsep}{PROJECT}"}


def unreached(folder: Path) -> dict[str, tuple[int, list[int]]]:
    """Returns, for each file of the product, the number of its lines and those that no process executed."""
    coverage = Slipcover(source=[str(source) for source in SOURCES]).get_coverage()
    for path in folder.glob(f"{PREFIX}*.json"):
        merge_coverage(coverage, json.loads(path.read_text()))
    return {
        name: (len(file["executed_lines"]) + len(file["missing_lines"]), file["missing_lines"])
        for name, file in sorted(coverage["files"].items())
    }


def percent(files: Mapping[str, tuple[int, list[int]]]) -> float:
    """Returns the share of all lines that were executed."""
    lines = sum(count for count, _ in files.values())
    return 100 * (1 - sum(len(missing) for _, missing in files.values()) / lines)


def _write(recorder: Slipcover, path: Path, pid: int) -> None:
    # A forked child inherits this function, and has recorded nothing but what its parent records, too.
    if os.getpid() == pid:
        coverage = recorder.get_coverage()
        # Names are relative to the current folder, which is another one in other processes.
        coverage["files"] = {str(Path(name).resolve()): file for name, file in coverage["files"].items()}
        path.write_text(json.dumps(coverage))
