"""Which control groups this process is in, and where they are mounted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from trainhub_node.isolation.cgroups import CONTROLLERS

# Of version 2; systemd, containers and the kernel's documentation agree on it.
UNIFIED = Path("/sys/fs/cgroup")


def own_paths() -> dict[str, str]:
    """Returns controller -> group of this process; version 2 has the name ""."""
    paths: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        paths |= dict.fromkeys(names.split(","), path)
    return paths


def own_group_v2() -> str:
    """Returns the group of this process relative to `UNIFIED`; "." is `UNIFIED` itself. Raises OSError if it
    is not below what is mounted there, as in a container that shows another group."""
    root = next((root for kind, root, target, _ in _mounts() if (kind, target) == ("cgroup2", UNIFIED)), "/")
    relative = os.path.relpath(own_paths().get("", "/"), root)
    if relative.startswith(".."):
        raise FileNotFoundError(errno.ENOENT, "the agent's own group is not below it", str(UNIFIED))
    return relative


def mounts_v1() -> dict[str, tuple[str, Path]]:
    """Returns controller -> (the group that is mounted, where)."""
    return {
        controller: (root, target)
        for kind, root, target, options in _mounts()
        for controller in CONTROLLERS
        if kind == "cgroup" and controller in options
    }


def _mounts() -> Iterator[tuple[str, str, Path, list[str]]]:
    """Yields (kind, the group that is mounted, where, options) of each mount of the machine."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        fields = before.split()
        yield kind, fields[3], Path(fields[4]), options.split(",")
