"""Runs the solver of conda environments with limited time, memory and output, in an empty folder that is its
home, too."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.conda import solver_reasons
from environments.conda.channel_list import check_channels
from environments.conda.conda_lock import CondaLock, conda_packages
from environments.conda.environment_file import EnvironmentFile
from environments.errors import Unresolvable
from environments.indexes.index_policy import IndexRefused
from environments.indexes.index_settings import network_variables
from environments.resolving.limited_process import ProcessLimits, read_start, run_limited

# Not imported here: rattler must not be loaded into a process of the hub.
SOLVER = Path(__file__).with_name("solver.py")
# Where no node of the workspace has reported its own: packages for this also run on nodes with an old glibc.
USUAL_GLIBC = "2.28"
# Taken if a package has nothing for the first one.
NEWEST_GLIBC = "2.39"
MAX_SOLUTIONS = 2
# What every x86-64 Linux that TrainHub supports has.
MACHINE = {"__unix": "0", "__linux": "4.18", "__archspec": "1"}
MAX_S = 90
MAX_CPU_S = 120
MAX_MEMORY_BYTES = 6 * 2**30
MAX_FILE_BYTES = 2 * 2**30
MAX_RESULT_BYTES = 16 * 2**20
MAX_MESSAGE_BYTES = 64 * 1024


def solve_environment(source: EnvironmentFile, oldest_glibc: str = "") -> CondaLock:
    """Returns the lock of the packages of conda that the file names, without those of pip. `oldest_glibc`:
    that of the nodes, "" if it is not known. Raises Unresolvable."""
    try:
        check_channels(source.channels)
    except IndexRefused as error:
        raise Unresolvable(f"{error}.") from error
    own = dict(source.virtual_packages)
    choices = dict.fromkeys((oldest_glibc or USUAL_GLIBC, NEWEST_GLIBC))
    for glibc in choices if "__glibc" not in own else ("",):
        machine = {**MACHINE, **({"__glibc": glibc} if glibc else {}), **own}
        result = _run(source, machine)
        if "__glibc" not in result.get("message", ""):
            break
    if "packages" not in result:
        raise Unresolvable(solver_reasons.unsolvable_sentence(result, source, MAX_S))
    try:
        packages = conda_packages(result["packages"])
    except KeyError as error:
        raise Unresolvable(
            f"The channel has no SHA-256 of {error.args[0]}, so that nodes could not check its file. Choose "
            "another version, or ask the channel's owner to index it again."
        ) from error
    for package in packages:
        # A channel's index may send its readers to another place.
        if not any(package.url.startswith(f"{url}/") for url in source.channels):
            raise Unresolvable(
                f"The channel {package.channel} has {package.name} at an address outside of it."
            )
    return CondaLock(source.channels, machine, packages)


def _run(source: EnvironmentFile, machine: Mapping[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="trainhub-resolve-") as name:
        folder = Path(name)
        request = {
            "channels": source.channels,
            "dependencies": source.dependencies,
            "virtual_packages": dict(machine),
            "needs_pip": source.pip is not None,
            "max_s": MAX_S,
        }
        (folder / "request.json").write_text(json.dumps(request))
        log, result = folder / "solver.log", folder / "result.json"
        environ = {"PATH": "/usr/bin:/bin", "HOME": name, "TMPDIR": name, **network_variables()}
        limits = ProcessLimits(MAX_S, MAX_CPU_S, MAX_MEMORY_BYTES, MAX_FILE_BYTES)
        code = run_limited([sys.executable, "-I", str(SOLVER), name], environ, log, limits)
        if code is None:
            return {"error": "timeout"}
        if code != 0 or not result.exists():
            return {"error": "crash", "message": read_start(log, MAX_MESSAGE_BYTES)}
        if result.stat().st_size > MAX_RESULT_BYTES:
            return {"error": "crash", "message": "the solution is too large"}
        return dict(json.loads(result.read_text()))
