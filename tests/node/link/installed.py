"""The wheel of a node, installed as on a machine of its own: in a virtual environment without Django."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.caching import CACHE, alone
from tests.hub import PROJECT

BUILDER = PROJECT / "packaging" / "build_wheel.py"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")


def requirements() -> list[str]:
    result: list[str] = tomllib.loads((PROJECT / "packaging" / "node" / "pyproject.toml").read_text())[
        "project"
    ]["dependencies"]
    return result


def build(to: Path) -> Path:
    done = subprocess.run(
        [sys.executable, BUILDER, to], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def install(wheel: Path, to: Path) -> Path:
    """A virtual environment with the wheel and nothing of ours besides; its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", to], check=True, timeout=120)
    python = to / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    Path(site.stdout.strip(), "needed.pth").write_text(f"{_needed()}\n")
    subprocess.run(
        [PIP[0], *PIP[1:3], "--python", python, *PIP[3:], "install", "--no-deps", wheel],
        check=True,
        timeout=120,
    )
    return to / "bin"


def _needed() -> Path:
    """What the wheel depends on, from the index; kept for as long as that stays the same."""
    key = hashlib.sha256("\n".join([*requirements(), sys.version]).encode()).hexdigest()[:12]
    place = CACHE / f"node-{key}"
    with alone("node"):
        if not (place / ".complete").exists():
            subprocess.run(
                [*PIP, "install", "--upgrade", "--target", place, *requirements()], check=True, timeout=600
            )
            (place / ".complete").touch()
    return place
