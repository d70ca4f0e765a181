"""The wheel of the hub, installed as on a machine that has nothing else of TrainHub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.hub import PROJECT, Hub

EPOCH = "1700000000"


def build(to: Path, package: str) -> Path:
    command = [sys.executable, str(PROJECT / "packaging" / "build_wheel.py"), str(to), "--package", package]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=variables, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def install(wheel: Path, venv: Path) -> Path:
    """A virtual environment with the wheel and all that it requires; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    python = venv / "bin" / "python"
    command = [sys.executable, str(PROJECT / ".ci" / "uv"), "pip", "install", "--python", str(python)]
    subprocess.run([*command, str(wheel)], check=True, timeout=600)
    return venv / "bin"


class InstalledHub(Hub):
    """A hub that `trainhub-hub up` has started, in a folder that has nothing of it."""

    is_new = True

    def __init__(self, programs: Path, folder: Path, **settings: str) -> None:
        super().__init__(folder / "data", RUN_AS="root" if os.geteuid() == 0 else "", **settings)
        self.python = str(programs / "python")
        self.script = str(programs / "trainhub-hub")
        self.project = folder

    def evaluate(self, code: str) -> object:
        """What the code prints as JSON within Django."""
        return json.loads(self.manage("shell", "--no-imports", "--command", code).stdout)
