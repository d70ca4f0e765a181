"""The control groups of an attempt: how much memory and CPU time, and how many processes its ranks may have.

For both versions of the kernel's interface. The child makes them, and each rank enters them before it becomes
the user's program, so wrappers stay outside and can tell how a rank ended. Imports little, because every run
waits for it."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

V1, V2 = 1, 2
MEMORY, PIDS, CPU = CONTROLLERS = ("memory", "pids", "cpu")
PERIOD_US = 100_000
# Threads count, too: PyTorch and NCCL start many for each rank.
LEAST_PIDS, PIDS_PER_RANK = 4096, 1024
# A rank counts as much as a CPU-bound program of the machine itself.
SHARES_PER_RANK, WEIGHT_PER_RANK = 1024, 100
MOST_SHARES, MOST_WEIGHT = 262_144, 10_000
REMOVE_TRIES, REMOVE_PAUSE_S = 20, 0.05


class Limits:
    """What one attempt may use on this node. `memory` in bytes and `cpus` in cores; None = no limit of its
    own."""

    def __init__(self, *, memory: int | None, cpus: float | None, ranks: int) -> None:
        self.memory = memory
        self.cpus = cpus
        self.pids = max(LEAST_PIDS, PIDS_PER_RANK * ranks)
        self.ranks = max(1, ranks)


class Group:
    """The groups of one attempt: one folder per controller in version 1, one for all in version 2.

    `place`: {"version", "parents": {controller: the folder that holds the groups of attempts}}. Raises
    OSError."""

    def __init__(self, place: Mapping[str, Any], name: str, limits: Limits) -> None:
        self.limits = limits
        self._version = place["version"]
        self._folders = folders(place, name)
        for folder in set(self._folders.values()):
            os.makedirs(folder, exist_ok=True)
        for controller, folder in self._folders.items():
            for file, value in _values(self._version, controller, limits).items():
                write(f"{folder}/{file}", value)
        self._entries = [
            os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            for folder in dict.fromkeys(self._folders.values())
        ]

    def enter(self) -> None:
        """Moves the calling process, and all that it starts from now on, into the groups."""
        for entry in self._entries:
            os.write(entry, b"0")

    def oom_kills(self) -> int:
        """Returns how many processes of the attempt the kernel has killed for lack of memory."""
        file = "memory.oom_control" if self._version == V1 else "memory.events"
        return _value_of(f"{self._folders.get(MEMORY, '')}/{file}", "oom_kill")

    def peak_memory(self) -> int | None:
        """Returns the most memory that the attempt had at once, in bytes; None where the kernel does not
        tell."""
        file = "memory.max_usage_in_bytes" if self._version == V1 else "memory.peak"
        return _number(f"{self._folders.get(MEMORY, '')}/{file}")

    def refused_forks(self) -> int:
        """Returns how often the limit of processes has refused one."""
        return _value_of(f"{self._folders.get(PIDS, '')}/pids.events", "max")


def folders(place: Mapping[str, Any], name: str) -> dict[str, str]:
    """Returns controller -> folder of the group `name`."""
    return {controller: f"{parent}/{name}" for controller, parent in place["parents"].items()}


def remove(place: Mapping[str, Any], name: str) -> None:
    """Removes the groups of an attempt, whose processes have ended. Some stay until the kernel has forgotten
    the last process; a group without processes costs nothing."""
    for folder in set(folders(place, name).values()):
        for _ in range(REMOVE_TRIES):
            try:
                os.rmdir(folder)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    break
                time.sleep(REMOVE_PAUSE_S)
            else:
                break


def _values(version: int, controller: str, limits: Limits) -> dict[str, str]:
    """Returns file -> content, in the order in which they are written."""
    if controller == PIDS:
        return {"pids.max": str(limits.pids)}
    if controller == MEMORY:
        return {} if limits.memory is None else _memory_values(version, limits.memory)
    return _cpu_values(version, limits)


def _memory_values(version: int, memory: int) -> dict[str, str]:
    # Swap counts as memory: a run that swaps would slow down the whole machine. Version 1 has one number for
    # both together, which must not be below that of memory.
    if version == V1:
        return {"memory.limit_in_bytes": str(memory), "memory.memsw.limit_in_bytes": str(memory)}
    return {"memory.max": str(memory), "memory.swap.max": "0"}


def _cpu_values(version: int, limits: Limits) -> dict[str, str]:
    if limits.cpus is None:
        if version == V1:
            return {"cpu.shares": str(min(MOST_SHARES, SHARES_PER_RANK * limits.ranks))}
        return {"cpu.weight": str(min(MOST_WEIGHT, WEIGHT_PER_RANK * limits.ranks))}
    quota = str(int(limits.cpus * PERIOD_US))
    if version == V1:
        return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota}
    return {"cpu.max": f"{quota} {PERIOD_US}"}


# A kernel can be built without counting swap.
OPTIONAL = ("memory.memsw.limit_in_bytes", "memory.swap.max")


def write(path: str, value: str) -> None:
    """Writes to a file of a control group. Raises OSError with the file's name, also for what the kernel
    refuses only when it reads the value."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.path.basename(path) in OPTIONAL:
            return
        raise
    try:
        os.write(fd, value.encode())
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdecimal() else None


def _value_of(path: str, name: str) -> int:
    """Returns the number behind `name` in a file of lines "name number"; 0 without it."""
    for line in _read(path).splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    return 0
