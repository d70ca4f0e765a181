"""Builds a wheel of this project: `build_wheel.py [FOLDER] [--package node|sdk|hub]`, by default that of a
node, in dist. Prints its path. With SOURCE_DATE_EPOCH two builds of the same sources have the same bytes."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
# The folder of each beside this file has its pyproject.toml.
PACKAGES = {
    "node": ("trainhub_launch", "trainhub_node"),
    "sdk": ("trainhub_sdk", "trainhub_cli", "trainhub_azureml"),
}
HUB = "hub"
# Where the project lies in the hub's package: as in a checkout, which its processes expect.
HUB_APP = "trainhub_hub/app"
HUB_FOLDERS = (
    *PACKAGES["node"],
    *PACKAGES["sdk"],
    *(
        "trainhub",
        "workspaces",
        "live",
        "clusters",
        "environments",
        "datastores",
        "jobs",
        "tracking",
        "registry",
    ),
    *("simulator", "templates", "static", "docs", "examples", "packaging"),
)
HUB_FILES = ("manage.py", "LICENSE", "requirements.txt", "*.md")
# What the command line requires, for machines without an index: `make sdk-wheels` has downloaded it.
SDK_WHEELS = Path(sys.prefix) / "sdk-wheels"
HUB_SDK_WHEELS = "packaging/sdk/wheels"
IGNORE = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", ".*")


def build(to: Path, name: str = "node") -> Path:
    """Returns the wheel `name`, made in `to` from a copy: a build leaves its own files beside the sources.
    Raises subprocess.CalledProcessError if it cannot be built."""
    with tempfile.TemporaryDirectory() as work:
        source, out = Path(work, "source"), Path(work, "out")
        shutil.copytree(PROJECT / "packaging" / name, source, ignore=IGNORE)
        shutil.copy(PROJECT / "LICENSE", source)
        (_add_hub if name == HUB else _packages_of(name))(source)
        for path in source.rglob("*"):
            # The bytes of a wheel contain the modes of its files, which depend on who has made the checkout.
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        # With what requirements.txt has brought: nothing is downloaded.
        command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-config", "--offline", "--quiet"]
        own = ["--no-build-isolation", "--python", sys.executable, "--out-dir", str(out)]
        subprocess.run([*command, *own, str(source)], check=True, umask=0o022)
        (wheel,) = out.glob("*.whl")
        to.mkdir(parents=True, exist_ok=True)
        # Whoever looks into the folder meanwhile must not take half a wheel for one.
        part = Path(shutil.copy(wheel, to / f"{wheel.name}.part"))
        return part.replace(to / wheel.name)


def _packages_of(name: str) -> Callable[[Path], None]:
    def add(source: Path) -> None:
        for package in PACKAGES[name]:
            shutil.copytree(PROJECT / package, source / package, ignore=IGNORE)

    return add


def _add_hub(source: Path) -> None:
    app = source / HUB_APP
    for folder in HUB_FOLDERS:
        shutil.copytree(PROJECT / folder, app / folder, ignore=IGNORE)
    for pattern in HUB_FILES:
        for path in PROJECT.glob(pattern):
            shutil.copy(path, app)
    if not SDK_WHEELS.is_dir():
        raise SystemExit(f"{SDK_WHEELS} is missing, which a hub serves at /sdk/: run `make sdk-wheels`.")
    shutil.copytree(SDK_WHEELS, app / HUB_SDK_WHEELS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PROJECT / "dist")
    parser.add_argument("--package", choices=[*sorted(PACKAGES), HUB], default="node")
    options = parser.parse_args()
    sys.stdout.write(f"{build(options.folder, options.package)}\n")
