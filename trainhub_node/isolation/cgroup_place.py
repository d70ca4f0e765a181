"""Finds, when the agent starts, the place for the control groups of attempts, and limits what all of them use
together."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainhub_node.isolation import cgroup_delegation, cgroup_mounts, cgroups
from trainhub_node.isolation.cgroup_mounts import UNIFIED
from trainhub_node.isolation.cgroups import (
    CONTROLLERS,
    CPU,
    MEMORY,
    MOST_WEIGHT,
    SHARES_PER_RANK,
    V1,
    V2,
    WEIGHT_PER_RANK,
)

SLICE = "trainhub.slice"
# What systemd manages has names with these endings. Groups in there would end, or be counted, with the agent.
UNIT_SUFFIXES = (".service", ".scope", ".slice")
# Left to the machine and the agent, whatever runs use.
LEAST_RESERVE, RESERVE_SHARE = 512 * 2**20, 0.05


@dataclass(frozen=True)
class CgroupPlace:
    """`parents`: controller -> the folder for the groups of attempts. `missing`: what the machine lacks, as
    parts of a sentence."""

    version: int
    parents: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        return set(CONTROLLERS) <= self.parents.keys()

    def to_terms(self) -> dict[str, object] | None:
        """Returns what `cgroups.Group` needs; None if there is no group at all."""
        return {"version": self.version, "parents": self.parents} if self.parents else None


def find_place(agent: str, memory_bytes: int) -> CgroupPlace:
    """Returns the place for the attempts of an agent, and makes it. Never raises: a machine without control
    groups runs everything as before. `agent`: a text that no other agent of this machine has."""
    tag = hashlib.sha256(agent.encode()).hexdigest()[:12]
    place = _place_v2(tag) if (UNIFIED / "cgroup.controllers").exists() else _place_v1(tag)
    try:
        _share_all(place)
        _limit_all(place, memory_bytes)
    except OSError as error:
        return replace(place, missing=(*place.missing, _refusal(error)))
    return place


def discard_place(parents: Mapping[str, str]) -> None:
    """Removes the place, unless groups of attempts are still in it."""
    for folder in set(parents.values()):
        with suppress(OSError):
            Path(folder).rmdir()


def _place_v1(tag: str) -> CgroupPlace:
    parents, missing = {}, []
    mounts, own = cgroup_mounts.mounts_v1(), cgroup_mounts.own_paths()
    for controller in CONTROLLERS:
        if controller not in mounts or controller not in own:
            missing.append(f"the kernel has no controller {controller}")
            continue
        root, top = mounts[controller]
        folder = top / _base(os.path.relpath(own[controller], root)) / tag
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            missing.append(_refusal(error))
        else:
            parents[controller] = str(folder)
    return CgroupPlace(V1, parents, tuple(dict.fromkeys(missing)))


def _base(own: str) -> Path:
    """Returns where the groups begin: beside the units of systemd if the agent is in one of them, otherwise
    below the agent's own group, which a container or an administrator has given to it."""
    parts = Path(own).parts
    if any(part.endswith(UNIT_SUFFIXES) for part in parts):
        return Path(SLICE)
    # An earlier agent has moved the shell or the container that starts this one.
    if parts and parts[-1] == cgroup_delegation.LEAF:
        parts = parts[:-1]
    return Path(*parts, "trainhub")


def _place_v2(tag: str) -> CgroupPlace:
    try:
        own = cgroup_mounts.own_group_v2()
        base = UNIFIED / _base(own)
        folder = base / tag
        folder.mkdir(parents=True, exist_ok=True)
        for group in (base.parent, base, folder):
            cgroup_delegation.delegate(group)
    except OSError as error:
        return CgroupPlace(V2, {}, (_refusal(error),))
    available = cgroup_delegation.delegated(folder)
    lacking = [name for name in CONTROLLERS if name not in available]
    missing = tuple(cgroup_delegation.reason_for_lack(base.parent, name) for name in lacking)
    return CgroupPlace(V2, {name: str(folder) for name in CONTROLLERS if name in available}, missing)


def _refusal(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "the agent may not make control groups"
    return f"{error.filename} cannot be used: {error.strerror}"


def _share_all(place: CgroupPlace) -> None:
    """Lets all attempts together count as much as one busy program for each core. A new group counts as much
    as a single program."""
    if CPU not in place.parents:
        return
    cores = os.cpu_count() or 1
    file, value = (
        ("cpu.shares", SHARES_PER_RANK * cores)
        if place.version == V1
        else ("cpu.weight", min(MOST_WEIGHT, WEIGHT_PER_RANK * cores))
    )
    folder = Path(place.parents[CPU])
    for level in (folder, folder.parent):
        cgroups.write(str(level / file), str(value))


def _limit_all(place: CgroupPlace, memory_bytes: int) -> None:
    """Limits the memory of all attempts together, so that the machine and the agent stay alive."""
    if MEMORY not in place.parents:
        return
    limit = memory_bytes - max(LEAST_RESERVE, int(memory_bytes * RESERVE_SHARE))
    file = "memory.limit_in_bytes" if place.version == V1 else "memory.max"
    if limit > LEAST_RESERVE:
        cgroups.write(f"{place.parents[MEMORY]}/{file}", str(limit))
