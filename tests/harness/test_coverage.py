"""What test runs record of the lines that they reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.coverage import recorder
from tests.test_architecture import PACKAGES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(recorder.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(recorder, "SOURCES", [recorder.PROJECT / "trainhub_launch" / "gpus"])
    return tmp_path


def run(code: str) -> None:
    environment = {**os.environ, **recorder.environment()}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", check=True)


def test_all_packages_of_the_product_are_recorded() -> None:
    assert set(recorder.PACKAGES) == {*PACKAGES, "simulator"}


def test_a_line_is_reached_if_any_process_executes_it(folder: Path) -> None:
    name = "trainhub_launch/gpus/xid.py"
    count, before = recorder.unreached(folder)[name]
    assert len(before) == count > 0
    run("import trainhub_launch.gpus.xid")
    _, imported = recorder.unreached(folder)[name]
    run("from trainhub_launch.gpus import xid; xid.xid(79)")
    _, called = recorder.unreached(folder)[name]
    assert len(called) < len(imported) < len(before)


def test_a_forked_child_writes_nothing(folder: Path) -> None:
    run("import os, sys, trainhub_launch.gpus.xid; pid = os.fork(); sys.exit() if not pid else os.wait()")
    assert len(list(folder.glob("*.json"))) == 1


def test_processes_are_not_recorded_unless_the_test_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(recorder.FOLDER_VARIABLE, raising=False)
    assert recorder.environment() == {}
