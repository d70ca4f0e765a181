"""Describes processes on a GPU: finds the program, the account and, for our runs, the run and rank of a
process id."""

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
from trainhub_node.attempts.attempt_state import MAX_RANK_RECORD_BYTES, MAX_RANK_RECORDS
from trainhub_node.proc import ProcessStat
from trainhub_node.rundir import RunDir

REFRESH_S = 1.0
MAX_ANCESTORS = 64
MAX_CACHE = 4096
MAX_NAME, MAX_USER = 100, 64
STARTED_SUFFIX = ".started.json"


@dataclass(frozen=True)
class ProcessOwner:
    """The run that a process belongs to.

    `rank`: None for a launcher or a helper of the run. `user`: "" means the account that the process runs
    as."""

    run: str
    attempt: int
    rank: int | None = None
    user: str = ""


def no_owner(_: int) -> ProcessOwner | None:
    return None


class ProcessInfo:
    """Describes processes on GPUs. Each process is read once; its start time distinguishes it from a later
    one with the same id."""

    def __init__(self, find_owner: Callable[[int], ProcessOwner | None]) -> None:
        self._find_owner = find_owner
        self._cache: dict[tuple[int, int], tuple[str, str]] = {}

    def describe(
        self, memory: Mapping[int, int | None], sm_pct: Mapping[int, float]
    ) -> tuple[GpuProcess, ...]:
        """Returns the processes of one device. `memory`: bytes by process id, None where the driver has no
        figure."""
        return tuple(self._describe_process(pid, memory[pid], sm_pct.get(pid)) for pid in sorted(memory))

    def _describe_process(self, pid: int, memory: int | None, sm_pct: float | None) -> GpuProcess:
        name, user = self._name_and_user(pid)
        owner = self._find_owner(pid)
        if owner is None:
            return GpuProcess(pid, name, user, memory, sm_pct)
        return GpuProcess(pid, name, owner.user or user, memory, sm_pct, owner.run, owner.attempt, owner.rank)

    def _name_and_user(self, pid: int) -> tuple[str, str]:
        process = proc.read_process(pid)
        if process is None:
            return "", ""  # it has ended, or is in another PID namespace
        key = (pid, process.start)
        if key in self._cache:
            return self._cache[key]
        command = proc.read(f"/proc/{pid}/cmdline") or b""
        info = _program_name(pid, command)[:MAX_NAME], _account(pid)[:MAX_USER]
        if len(self._cache) >= MAX_CACHE:
            self._cache.clear()
        if command:  # empty for a moment while the program starts
            self._cache[key] = info
        return info


class OwnerFinder:
    """Finds the run of a process through its ancestors, whose ids the files of our attempts record."""

    def __init__(self, list_attempts: Callable[[], Iterable[RunDir]]) -> None:
        self._list_attempts = list_attempts
        self._boot = proc.boot_id()
        self._folders: dict[str, _AttemptProcesses] = {}
        self._refreshed_at = float("-inf")
        self._ranks: dict[str, ProcessOwner] = {}
        self._children: dict[str, _AttemptProcesses] = {}
        self._cache: dict[str, ProcessOwner] = {}

    def find(self, pid: int) -> ProcessOwner | None:
        """Returns the owner of a process, None if it belongs to no run."""
        process = proc.read_process(pid)
        if process is None:
            return None
        self._refresh()
        identity = self._identity(process)
        owner = self._cache.get(identity) or self._search(process)
        if owner is not None and owner.rank is not None:
            # Only ranks are cached: a rank's record may be written after its process first appears.
            if len(self._cache) >= MAX_CACHE:
                self._cache.clear()
            self._cache[identity] = owner
        return owner

    def ranks(self) -> dict[int, ProcessOwner]:
        """Returns the processes of ranks by their ids; they may have ended."""
        self._refresh()
        return {int(identity.partition("/")[0]): owner for identity, owner in self._ranks.items()}

    def _search(self, process: ProcessStat) -> ProcessOwner | None:
        groups = set()
        for ancestor in _ancestors(process):
            identity = self._identity(ancestor)
            if identity in self._ranks:
                return self._ranks[identity]
            groups.add(ancestor.group)
            if identity in self._children:
                # Its parents have ended and the child adopted it. A rank leads a process group, in which
                # such orphans stay.
                folder = self._children[identity]
                return next(
                    (owner for group, owner in folder.groups.items() if group in groups), folder.owner
                )
        return None

    def _identity(self, process: ProcessStat) -> str:
        """Returns pid/boot/start: `proc.identity`, which records hold, with the process id in front."""
        return f"{process.pid}/{self._boot}/{process.start}"

    def _refresh(self) -> None:
        """Reads the attempts' folders again where they changed."""
        if time.monotonic() - self._refreshed_at < REFRESH_S:
            return
        self._refreshed_at = time.monotonic()
        previous = self._folders
        self._folders = {
            folder.path: previous.get(folder.path) or _AttemptProcesses(folder)
            for folder in self._list_attempts()
        }
        changes = [folder.refresh() for folder in self._folders.values()]
        if any(changes) or previous.keys() != self._folders.keys():
            self._ranks = {
                key: owner for folder in self._folders.values() for key, owner in folder.ranks.items()
            }
            self._children = {key: folder for folder in self._folders.values() for key in folder.children}
            self._cache.clear()


class _AttemptProcesses:
    """The processes that the records of one attempt name, read again when the records change. Keys:
    pid/boot/start."""

    def __init__(self, rundir: RunDir) -> None:
        self._rundir = rundir
        self._versions: tuple[int, ...] = ()
        self.owner = ProcessOwner(rundir.run, rundir.attempt)
        self.ranks: dict[str, ProcessOwner] = {}
        self.groups: dict[int, ProcessOwner] = {}
        self.children: tuple[str, ...] = ()

    def refresh(self) -> bool:
        """Reads the records if they changed. Returns whether they did."""
        # A record is renamed into the folder, which changes the modification time of the folder.
        folders = (self._rundir.path, self._rundir.ranks, self._rundir.child)
        versions = tuple(_modified_ns(path) for path in folders)
        if versions == self._versions:
            return False
        self._versions = versions
        self.children = tuple(
            f"{pid}/{identity}"
            for pid, identity in _process_identity(_record(self._rundir.child), "pid", "identity")
        )
        self.ranks, self.groups = {}, {}
        for number in _recorded_ranks(self._rundir.ranks):
            owner = ProcessOwner(self.owner.run, self.owner.attempt, number)
            record = _record(self._rundir.supervisor_started(number)) or _record(self._rundir.started(number))
            for pid, identity in (
                *_process_identity(record, "pid", "identity"),
                *_process_identity(record, "wrapper", "wrapper_identity"),
            ):
                self.ranks[f"{pid}/{identity}"] = owner
            self.groups.update({pid: owner for pid, _ in _process_identity(record, "pid", "identity")})
        return True


def _ancestors(process: ProcessStat) -> Iterator[ProcessStat]:
    """Yields the process and its ancestors. A "parent" younger than its child has only reused the process
    id."""
    current: ProcessStat | None = process
    for _ in range(MAX_ANCESTORS):
        if current is None:
            return
        yield current
        # Process 1 adopts orphans and is no part of a run; 0 is the kernel.
        parent = proc.read_process(current.parent) if current.parent > 1 else None
        current = parent if parent is not None and parent.start <= current.start else None


def _modified_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return -1


def _recorded_ranks(ranks: str) -> list[int]:
    """Returns the ranks that have a record. A run may own the folder, and fill it with any names in any
    number."""
    try:
        with os.scandir(ranks) as entries:
            names = [entry.name for entry in islice(entries, MAX_RANK_RECORDS)]
    except OSError:
        return []
    numbers = [name.removesuffix(STARTED_SUFFIX) for name in names if name.endswith(STARTED_SUFFIX)]
    return [int(number) for number in numbers if number.isdecimal()]


def _record(path: str) -> Mapping[str, object]:
    try:
        record = records.read(path, MAX_RANK_RECORD_BYTES)
    except records.UnreadableRecord:
        return {}
    return record if isinstance(record, dict) else {}


def _process_identity(record: Mapping[str, object], pid_key: str, identity_key: str) -> list[tuple[int, str]]:
    """Returns (pid, identity), or nothing unless both are valid: a rank's account writes some of these
    files."""
    pid, identity = record.get(pid_key), record.get(identity_key)
    return [(pid, identity)] if isinstance(pid, int) and isinstance(identity, str) and identity else []


def _program_name(pid: int, command: bytes) -> str:
    """Returns the program, and for Python the script. Arguments are left out, because they may hold
    secrets."""
    argv = command.decode(errors="replace").split("\0")
    program = (
        os.path.basename(argv[0]) or (proc.read(f"/proc/{pid}/comm") or b"").decode(errors="replace").strip()
    )
    if program.startswith("python"):
        program = f"{program} {_script_name(argv[1:])}".strip()
    return "".join(character for character in program if character.isprintable())


def _script_name(arguments: list[str]) -> str:
    rest = iter(arguments)
    for argument in rest:
        if argument == "-m":
            return f"-m {next(rest, '')}"
        if argument == "-c" or not argument:
            return ""
        # These two options take their value from the next argument, which is not the script.
        if argument in ("-W", "-X"):
            next(rest, "")
        elif not argument.startswith("-"):
            return os.path.basename(argument)
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
