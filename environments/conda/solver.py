"""Solves a conda environment, in a process of its own: `python -I solver.py FOLDER`.

Reads `request.json` in the folder, and writes `result.json`: the packages, or why there are none. Imports
nothing of TrainHub, and runs no code of a package: only the index of each channel is read."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from rattler import (
    BuildString,
    Channel,
    Client,
    Gateway,
    GenericVirtualPackage,
    MatchSpec,
    PackageName,
    Subdir,
    Version,
    solve,
)
from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError

PLATFORMS = (Subdir("linux-64"), Subdir("noarch"))
REQUEST_TIMEOUT_S = 20
MAX_CONNECTIONS = 16
# Names in the solver's reason, whose versions are looked up.
MAX_NAMES = 20
_NAME = re.compile(r"(?:─ |for )([a-z0-9_][a-z0-9_.-]*) ")


def solve_folder(folder: Path) -> None:
    request = json.loads((folder / "request.json").read_text())
    try:
        result = asyncio.run(_solve(request, folder / "cache"))
    except InvalidMatchSpecError as error:
        result = {"error": "dependency", "message": str(error)}
    except GatewayError as error:
        result = {"error": "channel", "message": str(error)}
    (folder / "result.json").write_text(json.dumps(result))


async def _solve(request: dict[str, Any], cache: Path) -> dict[str, Any]:
    gateway = Gateway(
        cache_dir=cache,
        client=Client.default_client(max_retries=1, timeout=REQUEST_TIMEOUT_S),
        max_concurrent_requests=MAX_CONNECTIONS,
    )
    channels = [Channel(url) for url in request["channels"]]
    specs = [MatchSpec(text) for text in request["dependencies"]]
    # As conda does it. A channel without pip is no reason to fail: nodes have one of their own.
    if request["needs_pip"] and (await _versions(gateway, channels, ["pip"]))["pip"]:
        specs.append(MatchSpec("pip"))
    try:
        records = await solve(
            channels,
            specs,
            gateway=gateway,
            platforms=PLATFORMS,
            virtual_packages=[
                GenericVirtualPackage(PackageName(name), Version(version), BuildString("0"))
                for name, version in request["virtual_packages"].items()
            ],
            timeout=timedelta(seconds=request["max_s"]),
            # A channel of the list could name others, which nobody has checked.
            channel_relations="disabled",
        )
    except SolverError as error:
        names = dict.fromkeys(
            [*(spec.name.normalized for spec in specs if spec.name), *_NAME.findall(str(error))]
        )
        versions = await _versions(gateway, channels, [*names][:MAX_NAMES])
        return {"error": "unsolvable", "message": str(error), "versions": versions}
    return {"packages": [json.loads(record.to_json()) for record in records]}


async def _versions(gateway: Gateway, channels: list[Channel], names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the versions of each package that the channels have, the newest last."""
    real = [name for name in names if not name.startswith("__")]
    versions: dict[str, set[Version]] = {name: set() for name in real}
    for records in await gateway.query(channels, PLATFORMS, real, recursive=False):
        for record in records:
            versions.setdefault(record.name.normalized, set()).add(record.version)
    return {name: [str(version) for version in sorted(ordered)] for name, ordered in versions.items()}


if __name__ == "__main__":
    try:
        solve_folder(Path(sys.argv[1]))
    except BaseException as error:  # a panic of rattler is no Exception
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)
    # rattler's threads may crash while the interpreter ends.
    os._exit(0)
