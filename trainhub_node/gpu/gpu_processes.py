"""Who works on a GPU: a process id of the driver's list as a name, an account and, where it is ours, a run
and a rank."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from trainhub_launch.telemetry import GpuProcess
from trainhub_node import proc, records
from trainhub_node.attempts.attempt_state import LARGEST_RANK_RECORD, MAX_RANK_RECORDS
from trainhub_node.proc import Process
from trainhub_node.rundir import RunDir

FRESH_S = 1.0
DEEPEST = 64
MOST_FACES = 4096
LONGEST_NAME, LONGEST_USER = 100, 64
STARTED = ".started.json"


@dataclass(frozen=True)
class Owner:
    """Whose a process is. `rank` None: a launcher or a helper of the run. `user`: "" = the account it runs
    as."""

    run: str
    attempt: int
    rank: int | None = None
    user: str = ""


def nobodys(_: int) -> Owner | None:
    return None


class Processes:
    """Looks at each process once; its start time tells it from a later one of the same number."""

    def __init__(self, owner_of: Callable[[int], Owner | None]) -> None:
        self._owner_of = owner_of
        self._faces: dict[tuple[int, int], tuple[str, str]] = {}

    def told(self, memory: Mapping[int, int | None], sm_pct: Mapping[int, float]) -> tuple[GpuProcess, ...]:
        """`memory`: bytes of each process on one device, None where the driver cannot tell."""
        return tuple(self._one(pid, memory[pid], sm_pct.get(pid)) for pid in sorted(memory))

    def _one(self, pid: int, memory: int | None, sm_pct: float | None) -> GpuProcess:
        name, user = self._face(pid)
        owner = self._owner_of(pid)
        if owner is None:
            return GpuProcess(pid, name, user, memory, sm_pct)
        return GpuProcess(pid, name, owner.user or user, memory, sm_pct, owner.run, owner.attempt, owner.rank)

    def _face(self, pid: int) -> tuple[str, str]:
        found = proc.process(pid)
        if found is None:
            return "", ""  # it has ended, or lives in another PID namespace
        key = (pid, found.start)
        if key in self._faces:
            return self._faces[key]
        command = proc.read(f"/proc/{pid}/cmdline") or b""
        face = _name(pid, command)[:LONGEST_NAME], _account(pid)[:LONGEST_USER]
        if len(self._faces) >= MOST_FACES:
            self._faces.clear()
        if command:  # empty for a moment after it has started its program
            self._faces[key] = face
        return face


class Owners:
    """Finds the run that a process belongs to by its ancestors, which the files of our attempts name."""

    def __init__(self, held: Callable[[], Iterable[RunDir]]) -> None:
        self._held = held
        self._boot = proc.boot_id()
        self._folders: dict[str, _Folder] = {}
        self._looked = float("-inf")
        self._ranks: dict[str, Owner] = {}
        self._children: dict[str, _Folder] = {}
        self._cache: dict[str, Owner] = {}

    def of(self, pid: int) -> Owner | None:
        one = proc.process(pid)
        if one is None:
            return None
        self._look()
        identity = self._identity(one)
        found = self._cache.get(identity) or self._search(one)
        if found is not None and found.rank is not None:
            # Only these: that a process is a rank's may not be written down yet when it is first seen.
            if len(self._cache) >= MOST_FACES:
                self._cache.clear()
            self._cache[identity] = found
        return found

    def _search(self, one: Process) -> Owner | None:
        groups = set()
        for ancestor in _upwards(one):
            identity = self._identity(ancestor)
            if identity in self._ranks:
                return self._ranks[identity]
            groups.add(ancestor.group)
            if identity in self._children:
                # It lost its parents and was taken in by the child; a rank leads its own group, which such
                # orphans stay in.
                folder = self._children[identity]
                return next(
                    (owner for group, owner in folder.groups.items() if group in groups), folder.owner
                )
        return None

    def _identity(self, one: Process) -> str:
        """As proc.identity, which everything on disk is written with; the pid is added, for records hold
        both."""
        return f"{one.pid}/{self._boot}/{one.start}"

    def _look(self) -> None:
        """Read what changed in the attempts' folders."""
        if time.monotonic() - self._looked < FRESH_S:
            return
        self._looked = time.monotonic()
        before = self._folders
        self._folders = {folder.path: before.get(folder.path) or _Folder(folder) for folder in self._held()}
        looks = [folder.look() for folder in self._folders.values()]
        if any(looks) or before.keys() != self._folders.keys():
            self._ranks = {
                key: owner for folder in self._folders.values() for key, owner in folder.ranks.items()
            }
            self._children = {key: folder for folder in self._folders.values() for key in folder.children}
            self._cache.clear()


class _Folder:
    """What one attempt's folder says of processes; read again only when it changed. Keys: pid/boot/start."""

    def __init__(self, rundir: RunDir) -> None:
        self._rundir = rundir
        self._seen: tuple[int, int] = (-1, -1)
        self.owner = Owner(rundir.run, rundir.attempt)
        self.ranks: dict[str, Owner] = {}
        self.groups: dict[int, Owner] = {}
        self.children: tuple[str, ...] = ()

    def look(self) -> bool:
        """True when something is new."""
        seen = (_changed(self._rundir.ranks), _changed(self._rundir.child))
        if seen == self._seen:
            return False
        self._seen = seen
        self.children = tuple(
            f"{pid}/{identity}" for pid, identity in _pair(_record(self._rundir.child), "pid", "identity")
        )
        self.ranks, self.groups = {}, {}
        for number in _numbers(self._rundir.ranks):
            owner = Owner(self.owner.run, self.owner.attempt, number)
            record = _record(self._rundir.started(number))
            for pid, identity in (
                *_pair(record, "pid", "identity"),
                *_pair(record, "wrapper", "wrapper_identity"),
            ):
                self.ranks[f"{pid}/{identity}"] = owner
            self.groups.update({pid: owner for pid, _ in _pair(record, "pid", "identity")})
        return True


def _upwards(one: Process) -> Iterator[Process]:
    """The process and its ancestors. A parent is older than its child; a younger one has only taken over its
    number."""
    current: Process | None = one
    for _ in range(DEEPEST):
        if current is None:
            return
        yield current
        parent = proc.process(current.parent) if current.parent > 1 else None
        current = parent if parent is not None and parent.start <= current.start else None


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


def _numbers(ranks: str) -> list[int]:
    """The ranks that have a record. The folder may be the run's, so its names may be anything, and as many as
    it likes."""
    try:
        with os.scandir(ranks) as entries:
            names = [entry.name for entry in islice(entries, MAX_RANK_RECORDS)]
    except OSError:
        return []
    numbers = [name.removesuffix(STARTED) for name in names if name.endswith(STARTED)]
    return [int(number) for number in numbers if number.isdecimal()]


def _record(path: str) -> Mapping[str, object]:
    try:
        found = records.read(path, LARGEST_RANK_RECORD)
    except records.Unreadable:
        return {}
    return found if isinstance(found, dict) else {}


def _pair(record: Mapping[str, object], pid: str, identity: str) -> list[tuple[int, str]]:
    """Empty unless both are what they should be: a rank's account writes some of these files."""
    number, name = record.get(pid), record.get(identity)
    return [(number, name)] if isinstance(number, int) and isinstance(name, str) and name else []


def _name(pid: int, command: bytes) -> str:
    """The program, and for Python the script: arguments are left out, for they may hold secrets."""
    words = command.decode(errors="replace").split("\0")
    program = (
        os.path.basename(words[0]) or (proc.read(f"/proc/{pid}/comm") or b"").decode(errors="replace").strip()
    )
    if program.startswith("python"):
        program = f"{program} {_script(words[1:])}".strip()
    return "".join(letter for letter in program if letter.isprintable())


def _script(words: list[str]) -> str:
    left = iter(words)
    for word in left:
        if word == "-m":
            return f"-m {next(left, '')}"
        if word == "-c" or not word:
            return ""
        if word in ("-W", "-X"):
            next(left, "")
        elif not word.startswith("-"):
            return os.path.basename(word)
    return ""


def _account(pid: int) -> str:
    try:
        return _account_name(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return ""


@lru_cache(maxsize=1024)
def _account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
