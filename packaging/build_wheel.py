"""Builds a wheel of this project: `build_wheel.py [FOLDER] [--package node|sdk]`, by default that of a node,
in dist. Prints its path."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# The folder of each beside this file has its pyproject.toml.
PACKAGES = {
    "node": ("trainhub_launch", "trainhub_node"),
    "sdk": ("trainhub_sdk", "trainhub_cli", "trainhub_azureml"),
}


def build(to: Path, name: str = "node") -> Path:
    """Returns the wheel `name`, made in `to` from a copy: a build leaves its own files beside the sources.
    Raises subprocess.CalledProcessError if it cannot be built."""
    with tempfile.TemporaryDirectory() as work:
        source, out = Path(work, "source"), Path(work, "out")
        shutil.copytree(PROJECT / "packaging" / name, source)
        shutil.copy(PROJECT / "LICENSE", source)
        for package in PACKAGES[name]:
            shutil.copytree(PROJECT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        # With what requirements.txt has brought: nothing is downloaded.
        command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-config", "--offline", "--quiet"]
        own = ["--no-build-isolation", "--python", sys.executable, "--out-dir", str(out)]
        subprocess.run([*command, *own, str(source)], check=True)
        (wheel,) = out.glob("*.whl")
        to.mkdir(parents=True, exist_ok=True)
        # Whoever looks into the folder meanwhile must not take half a wheel for one.
        part = Path(shutil.copy(wheel, to / f"{wheel.name}.part"))
        return part.replace(to / wheel.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PROJECT / "dist")
    parser.add_argument("--package", choices=sorted(PACKAGES), default="node")
    options = parser.parse_args()
    sys.stdout.write(f"{build(options.folder, options.package)}\n")
