"""Gives each attempt a number of its own, which is its user id and its group id.

A file in the agent's folder reserves each number in use. When the attempt's folder is gone and nothing on the
machine belongs to the number any more, the number rests for a day before another attempt gets it: what the
agent could not see, such as a file on another machine, is then unlikely to reach a stranger."""

from __future__ import annotations

import logging
import os
import pwd
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trainhub_node import proc, records

log = logging.getLogger(__name__)
REST_S = 86400.0
Key = tuple[str, int]


class NoFreeNumber(Exception):
    """All numbers are in use or rest; the message is a sentence with the remedy."""


class NumberLedger:
    """The numbers of one agent. `folder` holds one file for each number that is not free. Methods may be
    called from any thread."""

    def __init__(self, folder: Path, numbers: range) -> None:
        self._folder = folder
        self._numbers = numbers
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, exist_ok=True)
        self._taken: dict[int, dict[str, Any]] = dict(self._stored())
        # Another agent of this machine may have the same range, so they do not begin at the same number.
        self._next = random.randrange(len(numbers))  # noqa: S311

    def take(self, key: Key) -> int:
        """Returns the number of that attempt, which is the same for repeated calls. Raises NoFreeNumber."""
        with self._lock:
            for number, entry in self._taken.items():
                if (entry.get("run"), entry.get("attempt")) == key:
                    return number
            for step in range(len(self._numbers)):
                number = self._numbers[(self._next + step) % len(self._numbers)]
                if number not in self._taken and not _has_account(number):
                    self._next = self._next + step + 1
                    self._store(number, {"run": key[0], "attempt": key[1]})
                    return number
        raise NoFreeNumber(
            f"all {len(self._numbers)} account numbers of this node are in use or rest for a day; give it "
            "more in TRAINHUB_NODE_UIDS"
        )

    def give_back(self, key: Key) -> None:
        """Frees the number of an attempt that never had a file or a process."""
        with self._lock:
            for number, entry in list(self._taken.items()):
                if (entry.get("run"), entry.get("attempt")) == key:
                    self._free(number)

    def sweep(self, has_folder: Callable[[Key], bool], owners: set[int]) -> None:
        """Lets numbers rest whose attempt is gone, and frees those that have rested.

        `owners`: the accounts to which something on this machine belongs. The rest counts only time during
        which an agent has looked, by a clock that nobody can set: so no change of the clock shortens it."""
        with self._lock:
            boot, now = proc.boot_id(), time.clock_gettime(time.CLOCK_BOOTTIME)
            for number, entry in list(self._taken.items()):
                is_in_use = "rested_s" not in entry and has_folder((entry["run"], entry["attempt"]))
                if is_in_use:
                    continue
                if number in owners:
                    # Something appeared, or was overlooked: the rest begins anew.
                    self._store(number, {**entry, "rested_s": 0.0, "boot": boot, "at": now})
                    continue
                since = now - entry["at"] if entry.get("boot") == boot else 0.0
                rested_s = entry.get("rested_s", 0.0) + max(0.0, since)
                if rested_s >= REST_S:
                    self._free(number)
                else:
                    self._store(number, {**entry, "rested_s": rested_s, "boot": boot, "at": now})

    def _store(self, number: int, entry: dict[str, Any]) -> None:
        records.write(str(self._folder / str(number)), entry, patient=False)
        self._taken[number] = entry

    def _free(self, number: int) -> None:
        (self._folder / str(number)).unlink(missing_ok=True)
        del self._taken[number]

    def _stored(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for path in self._folder.iterdir():
            if not path.name.isdecimal():
                path.unlink()  # an agent was killed while it wrote
                continue
            try:
                entry = records.read(str(path))
            except records.UnreadableRecord:
                log.warning("%s is damaged; its number rests", path)
                entry = {"run": "", "attempt": 0, "rested_s": 0.0}
            yield int(path.name), entry


def _has_account(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True


# Of processes: real, effective, saved and file-system user id. Of shared memory, queues and semaphores of
# System V: owner and maker.
SYSVIPC = "/proc/sysvipc"
IPC_COLUMNS = ("uid", "cuid")
SHARED_FOLDERS = ("/dev/shm", "/tmp", "/var/tmp", "/dev/mqueue")  # noqa: S108 - only looked at


def owners() -> set[int]:
    """Returns the user ids to which a process, shared memory or a file in a place for everybody belongs."""
    found: set[int] = set()
    for process in proc.list_processes():
        found |= proc.user_ids(process.pid)
    for kind in ("shm", "msg", "sem"):
        found |= _ipc_owners((proc.read(f"{SYSVIPC}/{kind}") or b"").decode().splitlines())
    for folder in SHARED_FOLDERS:
        found |= _file_owners(folder)
    return found


def _ipc_owners(lines: list[str]) -> set[int]:
    if not lines:
        return set()
    columns = [lines[0].split().index(name) for name in IPC_COLUMNS]
    return {int(line.split()[column]) for line in lines[1:] for column in columns}


def _file_owners(folder: str) -> set[int]:
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found.add(entry.stat(follow_symlinks=False).st_uid)
                except OSError:
                    continue  # removed meanwhile
    except OSError:
        return set()
    return found
