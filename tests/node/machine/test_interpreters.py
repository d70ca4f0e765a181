"""Which Pythons of a machine an agent finds, in folders of the tests' own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainhub_node.machine.interpreters import find_interpreters


class Folders:
    """Folders on PATH. Each Python of them writes a line into `started`."""

    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "started"
        self.log.touch()

    def put(self, name: str, version: str) -> Path:
        """`version`: what it prints; "" if it does not work."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {name} >> {self.log}\necho {version}\ntest -n '{version}'\n")
        path.chmod(0o755)
        return path

    def started(self) -> list[str]:
        return self.log.read_text().split()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PYENV_ROOT", "CONDA_EXE"):
        monkeypatch.delenv(name, raising=False)
    return Folders(tmp_path)


def found(folders: Folders) -> dict[str, str]:
    """Those below the test's folder, with their versions."""
    machine = find_interpreters(sys.executable)
    assert machine[0].path == sys.executable
    return {
        interpreter.path.removeprefix(f"{folders.root}/"): interpreter.version
        for interpreter in machine
        if interpreter.path.startswith(str(folders.root))
    }


def test_one_with_several_names_is_found_once(folders: Folders) -> None:
    python = folders.put("first/python3.13", "3.13.1")
    (folders.root / "first/python3").symlink_to(python)
    folders.put("second/python3.12", "3.12.4")
    assert found(folders) == {"first/python3.13": "3.13.1", "second/python3.12": "3.12.4"}
    assert folders.started() == ["first/python3.13", "second/python3.12"]


def test_one_that_does_not_work_is_started_once_for_each_folder(folders: Folders) -> None:
    """A folder that the account may not enter says nothing about another one with the same Python."""
    broken = folders.put("first/python3.13", "")
    (folders.root / "first/python3").symlink_to(broken)
    (folders.root / "second").mkdir()
    (folders.root / "second/python3").symlink_to(broken)
    assert found(folders) == {}
    assert folders.started() == ["first/python3.13"] * 2


def test_variables_of_another_account_are_no_failure(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under root every folder can be entered, but none has so long a name."""
    monkeypatch.setenv("PYENV_ROOT", f"/{'x' * 300}")
    monkeypatch.setenv("CONDA_EXE", f"/{'x' * 300}/bin/conda")
    folders.put("first/python3.13", "3.13.1")
    assert found(folders) == {"first/python3.13": "3.13.1"}
