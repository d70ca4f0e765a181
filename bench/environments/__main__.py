"""Locked environments on a node: from nothing, from a warm package cache, and from the hub alone, each beside
what a person would do by hand with pip, curl and uv; and how long the first run waits for its first line.

Needs root: the node gives each run an account of its own, and an account of its own installs. The second node
is the same one after its caches were emptied. `--requirements` names a file, and `--imports` what its runs
import; the default is the curated PyTorch set (some GB)."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from bench.support.limits import Limits, median
from bench.support.stack import Stack, stack
from environments.curated import CURATED
from environments.indexes.index_settings import read_pip_settings
from tests.attacks.server.separated import HUB_ACCOUNT, passable_python, public_folder
from trainhub_launch.log_names import ENVIRONMENT_LOG, PREPARATION_LOG

NAME = "measured"
# Of the node's cache: finished environments, wheels with all that is made of them, and compiled modules.
BUILT, PACKAGES = "environments/*", "packages/*"
UNCOMPILED = "environments/*/trainhub-uncompiled"
FROM_NOTHING, WARM_CACHE, HUB_ONLY = 0.5, 0.1, 1.5
NAMES = (
    BY_HAND := "pip by hand, from nothing",
    NOTHING := "TrainHub, from nothing (hub and node)",
    NOTHING_COMPILED := "the same, until every module is compiled",
    CACHED := "TrainHub, with the node's package cache",
    HUB_ALONE := "TrainHub, from the hub only",
    COPIED := "curl of the wheels from the hub",
    UNPACKED := "uv by hand, unpacking and installing these",
    FIRST := "from the hub only: order of the first run to its first line",
    COMPILED_FIRST := "the same, if every module is compiled before the run",
    LATER := "order of a later run to its first line",
)
MAX_BUILD_S = 1800
USE = "print('ready', flush=True)\n"
DRIVER_LOG = "70_driver_log.txt"
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
    """`cache`: the node's. `imports`: names of modules that a run imports before its first line."""

    def __init__(self, hub: Stack, work: Path, imports: str) -> None:
        self.hub = hub
        self.work = work
        self.cache = hub.data / "node" / "cache"
        use = f"import {imports}\n{USE}" if imports else USE
        self.use, self.wait = (hub.snapshot({"main.py": text}) for text in (use, WAIT))

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
        self.set_aside(folder)
        return seconds

    def empty_hub(self) -> None:
        self.hub.shell(EMPTY_HUB)

    def build(self) -> float:
        """Returns the seconds for which the node builds the environment, as a run has it do."""
        self.first_line()
        return float(self._version(1)["builds"][0]["build_s"])

    def order_build(self) -> float:
        """Returns the seconds from the order to build the environment, as "Build now" does, until it is
        ready."""
        started = time.monotonic()
        address = f"/environments/{NAME}/versions/1"
        (build,) = self.hub.api("POST", f"{address}/build/", json={})
        while (state := self.hub.api("GET", f"{address}/builds/{build['id']}/")["state"]) != "built":
            if state in ("failed", "canceled"):
                raise RuntimeError(f"the build {state}")
            time.sleep(0.02)
        return time.monotonic() - started

    def first_line(self) -> float:
        """Returns the seconds from the order of a run until the hub has its first line."""
        started = time.monotonic()
        run = self.hub.submit(self.use, "main.py", environment={"name": NAME})
        deadline = started + MAX_BUILD_S
        while not self._log(run, DRIVER_LOG) and time.monotonic() < deadline:
            time.sleep(0.02)
        seconds = time.monotonic() - started
        ended = self.hub.wait(run, MAX_BUILD_S)
        if ended["state"] != "Completed":
            log = self._log(run) + self._log(run, PREPARATION_LOG) + self._log(run, DRIVER_LOG)
            raise RuntimeError(f"the run {ended['state']}: {log[-2000:]}")
        return seconds

    def compile_rest(self) -> float:
        """Returns the seconds in which the node compiles what is left, which it does at once for "Build now":
        with the lowest priority it takes for ever beside other work."""
        return self.order_build() if any(self.cache.glob(UNCOMPILED)) else 0.0

    def empty(self, *patterns: str) -> None:
        """Empties these caches of the node. What was in them is deleted after the measurement: a file system
        without a journal (ext4) creates no file in the place of one that was deleted within some minutes, and
        looks at each of these places for every new file. That made a build here take twice as long."""
        self.compile_rest()
        for pattern in patterns:
            for path in self.cache.glob(pattern):
                self.set_aside(path)

    def set_aside(self, path: Path) -> None:
        """Moves the path to a new folder beside the caches."""
        aside = self.hub.data / "aside"
        aside.mkdir(exist_ok=True)
        path.rename(Path(tempfile.mkdtemp(dir=aside)) / path.name)

    def curl_and_unpack(self, lock: str) -> tuple[float, int, float]:
        """Returns the seconds in which curl copies the files of the lock from the hub, their bytes, and the
        seconds in which uv by hand installs these copies with an empty cache, and compiles no module."""
        run = self.hub.submit(self.wait, "main.py", environment={"name": NAME})
        try:
            while "here" not in self._log(run, DRIVER_LOG):
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
            return seconds, size, self._unpack(lock, target)
        finally:
            self.hub.api("POST", f"/runs/{run}/cancel/")
            self.hub.wait(run)

    def _unpack(self, lock: str, wheels: Path) -> float:
        folder, cache, file = (self.work / name for name in ("unpacked", "uv-cache", "wheels.lock"))
        lines = [line for line in lock.splitlines() if not line.lstrip().startswith("--") or "--hash" in line]
        file.write_text("\n".join(lines))
        started = time.monotonic()
        uv = find_uv_bin()
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
        options = ["--offline", "--no-index", "--find-links", wheels, "--require-hashes", "--no-deps"]
        python = ["--python", folder / "bin" / "python", "--cache-dir", cache]
        command = [*(uv, "pip", "install", "--quiet"), *map(str, (*options, *python, "--requirement", file))]
        subprocess.run(command, check=True)
        seconds = time.monotonic() - started
        for path in (folder, cache, wheels):
            self.set_aside(path)
        return seconds

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
    parser.add_argument("--imports", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--without-pip", action="store_true", help="leave out pip by hand, the slowest part")
    options = parser.parse_args()
    lines = options.requirements.read_text().splitlines() if options.requirements else None
    requirements = lines or [*CURATED[0].requirements]
    imports = options.imports or ("" if lines else "torch, sklearn")
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
            bench = Bench(hub, Path(work), imports)
            return measure(bench, requirements, options.rounds, with_pip=not options.without_pip)


def measure(bench: Bench, requirements: list[str], rounds: int, *, with_pip: bool) -> int:
    lock = bench.lock(requirements)
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    size = 0
    for _ in range(rounds):
        if with_pip:
            values[BY_HAND].append(bench.pip(lock))
        bench.empty_hub()
        bench.empty(BUILT, PACKAGES)
        values[NOTHING].append(bench.build())
        values[NOTHING_COMPILED].append(values[NOTHING][-1] + bench.compile_rest())
        bench.empty(BUILT)
        values[CACHED].append(bench.build())
        bench.empty(BUILT, PACKAGES)
        values[HUB_ALONE].append(bench.build())
        copied, size, unpacked = bench.curl_and_unpack(lock)
        values[COPIED].append(copied)
        values[UNPACKED].append(unpacked)
        bench.empty(BUILT, PACKAGES)
        values[FIRST].append(bench.first_line())
        bench.compile_rest()
        values[LATER].append(bench.first_line())
        bench.empty(BUILT, PACKAGES)
        values[COMPILED_FIRST].append(bench.order_build() + bench.first_line())
    print(f"{lock.count('==')} packages, {size / 1e6:.0f} MB of wheels, medians of {rounds}")
    medians = {name: median(values[name]) for name in NAMES if values[name]}
    for name, seconds in medians.items():
        print(f"{name:<60} {seconds:8.2f} s")
    return judge(medians)


def judge(seconds: dict[str, float]) -> int:
    """Returns the exit code: 1 if a limit is exceeded."""
    limits = Limits()
    if BY_HAND in seconds:
        limits.at_most("from nothing, to pip", seconds[NOTHING] / seconds[BY_HAND], FROM_NOTHING)
        # pip compiles every module before it ends.
        print(f"the same with every module compiled: {seconds[NOTHING_COMPILED] / seconds[BY_HAND]:.2f}")
        limits.at_most(
            "with the package cache, to pip from nothing", seconds[CACHED] / seconds[BY_HAND], WARM_CACHE
        )
    reference = seconds[COPIED] + seconds[CACHED]
    limits.at_most("from the hub only, to curl and the cache", seconds[HUB_ALONE] / reference, HUB_ONLY)
    # The cache has the wheels unpacked already, which a second node has to do.
    unpacking = seconds[COPIED] + seconds[UNPACKED]
    print(f"from the hub only, to curl and uv by hand that unpacks: {seconds[HUB_ALONE] / unpacking:.2f}")
    print(
        f"first run, to one whose modules are compiled first: {seconds[FIRST] / seconds[COMPILED_FIRST]:.2f}"
    )
    return limits.exit_code()


if __name__ == "__main__":
    sys.exit(main())
