"""Locked environments on a node: from nothing, from a warm package cache, and from the hub alone, each beside
what a person would do by hand with pip and curl.

Needs root: the node gives each run an account of its own, and an account of its own installs. The second node
is the same one after its caches were emptied. `--requirements` names a file; the default is the curated
PyTorch set (some GB)."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack
from environments.curated import CURATED
from environments.indexes.index_settings import read_pip_settings
from tests.attacks.server.separated import HUB_ACCOUNT, passable_python, public_folder
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG

NAME = "measured"
# Of the node's cache: finished environments, wheels with all that is made of them, and compiled modules.
BUILT, PACKAGES, COMPILED = "environments/*", "packages/*", "packages/*/bytecode"
FROM_NOTHING, WARM, HUB_ONLY = 0.5, 0.1, 1.5
MAX_BUILD_S = 1800
USE = "print('ready', flush=True)\n"
WAIT = "import time; print('here', flush=True); time.sleep(3600)\n"
PREFIX = "FILE "
FILES = """
from environments.models import LockedFile
for file in LockedFile.objects.filter(is_preferred=True):
    print('FILE', file.sha256, file.filename)
"""
EMPTY_HUB = """
from environments.models import PackageFile
from workspaces.stored_files import blobs
for file in PackageFile.objects.all():
    blobs.path(file.sha256).unlink(missing_ok=True)
    file.delete()
"""


class Bench:
    """`cache`: the node's."""

    def __init__(self, hub: Stack, work: Path) -> None:
        self.hub = hub
        self.work = work
        self.cache = hub.data / "node" / "cache"
        self.use, self.wait = (hub.snapshot({"main.py": text}) for text in (USE, WAIT))

    def lock(self, requirements: list[str]) -> str:
        """Makes the environment, and returns the text of its lock."""
        body = {"name": NAME, "kind": "pip", "python": "3.11", "requirements": requirements}
        number = self.hub.api("POST", "/environments/", json=body)["version"]
        while (version := self._version(number))["state"] == "resolving":
            time.sleep(0.2)
        if version["state"] != "locked":
            raise RuntimeError(version["failure"])
        return str(version["lock"])

    def pip(self, lock: str) -> float:
        """Returns the seconds of pip by hand, from nothing."""
        folder = self.work / "by-hand"
        file = self.work / "requirements.lock"
        file.write_text(lock)
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        options = ["--quiet", "--no-cache-dir", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
        program = [str(folder / "bin" / "python"), "-m", "pip"]
        command = [*program, "install", *options, "--requirement", str(file)]
        subprocess.run(command, check=True)
        seconds = time.monotonic() - started
        shutil.rmtree(folder)
        return seconds

    def empty_hub(self) -> None:
        self.hub.shell(EMPTY_HUB)

    def build(self, *emptied: str) -> float:
        """Returns the seconds for which the node builds the environment, after these caches were emptied."""
        for pattern in emptied:
            for path in self.cache.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        run = self.hub.submit(self.use, "main.py", environment={"name": NAME})
        ended = self.hub.wait(run, MAX_BUILD_S)
        if ended["state"] != "Completed":
            log = self._log(run) + self._log(run, PREPARATION_LOG)
            raise RuntimeError(f"the run {ended['state']}: {log[-2000:]}")
        return float(self._version(1)["builds"][0]["build_s"])

    def curl(self) -> tuple[float, int]:
        """Returns the seconds in which curl copies the files of the lock from the hub, and their bytes."""
        run = self.hub.submit(self.wait, "main.py", environment={"name": NAME})
        try:
            while "here" not in self._log(run, "70_driver_log.txt"):
                time.sleep(0.1)
            order = self._order(run)
            target = self.work / "copied"
            target.mkdir()
            lines = [f'user = "trainhub:{order["package_ticket"]}"']
            for line in self.hub.shell(FILES).splitlines():
                names = line.removeprefix(PREFIX).split()
                if line.startswith(PREFIX):
                    url = f"{order['package_index']}/files/{names[0]}/{names[1]}"
                    lines += [f'url = "{url}"', f'output = "{target / names[1]}"']
            config = self.work / "curl.conf"
            config.write_text("\n".join([*lines, ""]))
            started = time.monotonic()
            subprocess.run(["curl", "--silent", "--show-error", "--fail", "--config", config], check=True)
            seconds = time.monotonic() - started
            size = sum(file.stat().st_size for file in target.iterdir())
            shutil.rmtree(target)
            return seconds, size
        finally:
            self.hub.api("POST", f"/runs/{run}/cancel/")
            self.hub.wait(run)

    def _version(self, number: int) -> dict[str, Any]:
        version: dict[str, Any] = self.hub.api("GET", f"/environments/{NAME}/versions/{number}/")
        return version

    def _log(self, run: str, name: str = ENVIRONMENT_LOG) -> str:
        file = self.hub.log_file(run, name)
        return file.read_text(errors="replace") if file.exists() else ""

    def _order(self, run: str) -> dict[str, Any]:
        (file,) = (self.hub.data / "node" / "attempts").glob(f"{run}-1/order.json")
        order: dict[str, Any] = json.loads(file.read_text())
        return order


def pip_settings(file: Path) -> None:
    """Writes pip's settings of this machine as one file: an agent with variables of pip would ask those
    indexes before the hub's."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    values = read_pip_settings(listing.stdout)
    file.write_text("\n".join(["[global]", *(f"{name} = {value}" for name, value in values.items()), ""]))
    file.chmod(0o644)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requirements", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    lines = options.requirements.read_text().splitlines() if options.requirements else None
    requirements = lines or [*CURATED[0].requirements]
    with public_folder() as folder, tempfile.TemporaryDirectory(prefix="th-bench-work-") as work:
        python = passable_python(folder)
        pip_settings(folder / "pip.conf")
        (folder / "data").mkdir()
        own = {
            "RUN_AS": "range",
            "HUB_AS": HUB_ACCOUNT,
            "LD_LIBRARY_PATH": str(Path(python).parent.parent / "lib"),
            "PIP_CONFIG_FILE": str(folder / "pip.conf"),
            "PIP_FIND_LINKS": "",
        }
        with stack(folder / "data", python=python, **own) as hub:
            return measure(Bench(hub, Path(work)), requirements, options.rounds)


def measure(bench: Bench, requirements: list[str], rounds: int) -> int:
    lock = bench.lock(requirements)
    by_hand, nothing, warm, cached, hub_only, copied = ([] for _ in range(6))
    size = 0
    for _ in range(rounds):
        by_hand.append(bench.pip(lock))
        bench.empty_hub()
        nothing.append(bench.build(BUILT, PACKAGES))
        warm.append(bench.build(BUILT))
        cached.append(bench.build(BUILT, COMPILED))
        hub_only.append(bench.build(BUILT, PACKAGES))
        seconds, size = bench.curl()
        copied.append(seconds)
    print(f"{lock.count('==')} packages, {size / 1e6:.0f} MB of wheels, medians of {rounds}")
    for name, values in (
        ("pip by hand, from nothing", by_hand),
        ("TrainHub, from nothing (hub and node)", nothing),
        ("TrainHub, with the node's package cache", warm),
        ("the same without compiled modules", cached),
        ("TrainHub, from the hub only", hub_only),
        ("curl of the wheels from the hub", copied),
    ):
        print(f"{name:<44} {median(values):8.2f} s")
    limits = Limits()
    limits.at_most("from nothing, to pip", median(nothing) / median(by_hand), FROM_NOTHING)
    limits.at_most("with the package cache, to pip from nothing", median(warm) / median(by_hand), WARM)
    # The install from the cache does not compile modules, which the second node has to do: printed beside.
    compiling = median(hub_only) / (median(copied) + median(cached))
    print(f"from the hub only, to curl and an install that compiles: {compiling:.2f}")
    reference = median(copied) + median(warm)
    limits.at_most("from the hub only, to curl and the cache", median(hub_only) / reference, HUB_ONLY)
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
