"""Finds, when the agent starts, the place for the control groups of attempts, and limits what all of them use
together."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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

UNIFIED = Path("/sys/fs/cgroup")
SLICE = "trainhub.slice"
# What systemd manages has names with these endings. Groups in there would end, or be counted, with the agent.
UNIT_SUFFIXES = (".service", ".scope", ".slice")
AGENT_LEAF = "trainhub-agent"
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
    _share_all(place)
    _limit_all(place, memory_bytes)
    return place


def discard_place(parents: Mapping[str, str]) -> None:
    """Removes the place, unless groups of attempts are still in it."""
    for folder in set(parents.values()):
        with suppress(OSError):
            Path(folder).rmdir()


def _place_v1(tag: str) -> CgroupPlace:
    parents, missing = {}, []
    mounts, own = _mounts_v1(), _own_paths()
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
    if own.endswith(UNIT_SUFFIXES) or any(part.endswith(UNIT_SUFFIXES) for part in Path(own).parts):
        return Path(SLICE)
    return Path(own) / "trainhub"


def _place_v2(tag: str) -> CgroupPlace:
    own = _own_paths().get("", "/").lstrip("/")
    base = UNIFIED / _base(own)
    folder = base / tag
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _delegate(UNIFIED / own, base)
        for step in (base, folder):
            (step / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
    except OSError as error:
        return CgroupPlace(V2, {}, (_refusal(error),))
    available = (folder / "cgroup.subtree_control").read_text().split()
    missing = tuple(f"the kernel has no controller {name}" for name in CONTROLLERS if name not in available)
    return CgroupPlace(V2, {name: str(folder) for name in CONTROLLERS if name in available}, missing)


def _delegate(own: Path, base: Path) -> None:
    """Gives the controllers to `base`. A group that gives them to others may hold no process itself."""
    parent = base.parent
    if parent == own and own != UNIFIED:
        (own / AGENT_LEAF).mkdir(exist_ok=True)
        (own / AGENT_LEAF / "cgroup.procs").write_text(str(os.getpid()))
    (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))


def _refusal(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "the agent may not make control groups"
    return f"no control groups can be made in {error.filename}: {error.strerror}"


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
        (level / file).write_text(str(value))


def _limit_all(place: CgroupPlace, memory_bytes: int) -> None:
    """Limits the memory of all attempts together, so that the machine and the agent stay alive."""
    if MEMORY not in place.parents:
        return
    limit = memory_bytes - max(LEAST_RESERVE, int(memory_bytes * RESERVE_SHARE))
    file = "memory.limit_in_bytes" if place.version == V1 else "memory.max"
    if limit > LEAST_RESERVE:
        Path(place.parents[MEMORY], file).write_text(str(limit))


def _own_paths() -> dict[str, str]:
    """Returns controller -> group of this process; version 2 has the name ""."""
    paths: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        paths |= dict.fromkeys(names.split(","), path)
    return paths


def _mounts_v1() -> dict[str, tuple[str, Path]]:
    """Returns controller -> (the group that is mounted, where)."""
    return {
        controller: (root, Path(target))
        for root, target, options in _cgroup_mounts()
        for controller in CONTROLLERS
        if controller in options
    }


def _cgroup_mounts() -> Iterator[tuple[str, str, list[str]]]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup":
            fields = before.split()
            yield fields[3], fields[4], options.split(",")
