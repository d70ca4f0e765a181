"""Builds the wheel of a node: `build_wheel.py [FOLDER]`, by default dist. Prints its path."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("trainhub_launch", "trainhub_node")


def build(to: Path) -> Path:
    """The wheel, made in `to` from a copy: a build leaves its own files beside the sources."""
    with tempfile.TemporaryDirectory() as work:
        source, out = Path(work, "source"), Path(work, "out")
        shutil.copytree(PROJECT / "packaging" / "node", source)
        shutil.copy(PROJECT / "LICENSE", source)
        for package in PACKAGES:
            shutil.copytree(PROJECT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        # With what requirements.txt has brought: nothing is downloaded.
        command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-config", "--offline", "--quiet"]
        own = ["--no-build-isolation", "--python", sys.executable, "--out-dir", str(out)]
        subprocess.run([*command, *own, str(source)], check=True)
        (made,) = out.glob("*.whl")
        to.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, to))


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT / 'dist'))}\n")
