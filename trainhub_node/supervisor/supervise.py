"""The child, second half: waits for the ranks, ends them when they must end, and leaves no process behind."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from trainhub_node import proc, records
from trainhub_node.attempts import termination
from trainhub_node.rundir import LAUNCHER_LOG
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.child import SIGNALS
from trainhub_node.supervisor.gang import Gang

PR_SET_CHILD_SUBREAPER = 36
LOOK_S = 1.0
KILL_AGAIN_S = 0.2
SPARE_WRAPPERS_S = 2.0
LEFTOVER_GRACE_S = 5.0
STUBBORN_S = 30.0
STARTED_FIELDS = {"pid": int, "identity": str, "at": float, "wrapper": int, "wrapper_identity": str}
ENDED_FIELDS = {"at": float, "exit_code": int, "signal": int, "by_us": bool, "out_of_memory": bool}
ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+)")


def keep(gang: Gang) -> NoReturn:
    _adopt_orphans()
    if gang.running_since is not None:
        _Keeper(gang).run()
    gang.state["ended"] = True
    gang.state["ended_at"] = time.time()
    gang.save()
    os._exit(0)


def _adopt_orphans() -> None:
    """Whoever loses its parent below us becomes our child: so nothing can slip away unseen, and `waitpid`
    tells all."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class _Keeper:
    """`kill_at`: when SIGTERM turns into SIGKILL; None while nobody is to end."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self.folder = gang.folder
        self.ended: dict[int, dict[str, Any]] = {}
        self.told: set[int] = set()
        self.kill_at: float | None = None
        self.childless = False

    def run(self) -> None:
        while True:
            self._reap()
            if self.childless:
                break
            self._decide()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self._kill()
            signal.sigtimedwait(SIGNALS, self._patience())
        self._sweep()
        self._settle_ranks()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            self._note_end(pid, os.waitstatus_to_exitcode(status))

    def _note_end(self, pid: int, code: int) -> None:
        if pid == self.gang.launcher:
            self.gang.launcher_status = code
            return
        number = self.gang.wrappers.pop(pid, None)
        if number is None:
            # A rank that outlived its wrapper has become our own child: its end is ours to record.
            number = next((n for n in self._numbers() if (self._started(n) or {}).get("pid") == pid), None)
            if number is not None and self._end_of(number) is None:
                told = number in self.told or self.kill_at is not None or self.gang.launcher is not None
                self._write_end(number, rank.ending(code, told=told))
        elif self._end_of(number) is None and self._started(number) is None:
            self._write_end(number, rank.ending(code, told=False))

    def _numbers(self) -> list[int]:
        return [process["rank"] for process in self.gang.processes]

    def _started(self, number: int) -> dict[str, Any] | None:
        return _record(self.folder.started(number), STARTED_FIELDS)

    def _write_end(self, number: int, end: dict[str, Any]) -> None:
        """Not into the folder of the wrappers' records: under MPI that is the run's, where a pipe could wait
        at the name."""
        records.write(self.folder.supervisor_ended(number), end)

    def _end_of(self, number: int) -> dict[str, Any] | None:
        if number not in self.ended:
            found = _record(self.folder.supervisor_ended(number), ENDED_FIELDS)
            found = found or _record(self.folder.ended(number), ENDED_FIELDS)
            if found is None:
                return None
            self.ended[number] = {**rank.ending(-signal.SIGKILL, told=False), **found}
        return self.ended[number]

    def _decide(self) -> None:
        if self.kill_at is not None:
            return
        gang = self.gang
        request = gang.stop_request()
        if request is not None:
            self._begin(request["why"], float(request["grace_s"]))
        elif self._overdue():
            self._begin("timeout", gang.grace_s)
        elif self._failed():
            self._begin("gang", gang.grace_s)
        elif self._decided():
            self._begin("", gang.grace_s if self._waiting_for() else min(gang.grace_s, LEFTOVER_GRACE_S))

    def _overdue(self) -> bool:
        limit = self.gang.order["timeout_s"]
        return limit is not None and time.monotonic() >= (self.gang.running_since or 0) + limit

    def _failed(self) -> bool:
        """A deciding rank has failed; under mpirun its peers are mpirun's to end, and ours once it is
        gone."""
        if self.gang.launcher is not None and self.gang.launcher_status is None:
            return False
        ends = [self._end_of(process["rank"]) for process in self.gang.processes if process["decides"]]
        return any(end is not None and _bad(end) for end in ends)

    def _decided(self) -> bool:
        if self.gang.launcher is not None:
            return self.gang.launcher_status is not None
        deciding = [process["rank"] for process in self.gang.processes if process["decides"]]
        if not deciding and self.gang.several:
            # Whom these serve is on another node: only the hub sees when that one is done.
            deciding = self._numbers()
        return not any(self._end_of(number) is None for number in deciding)

    def _waiting_for(self) -> list[int]:
        return [number for number in self._numbers() if self._end_of(number) is None]

    def _begin(self, why: str, grace_s: float) -> None:
        """SIGTERM to all: ranks through their wrappers, which note it; whoever left their groups directly."""
        self.gang.state["stopping"] = why
        self.gang.state["stopping_at"] = time.time()
        self.gang.save()
        self.kill_at = time.monotonic() + grace_s
        wrappers, groups = self._wrappers()
        self.told |= set(wrappers.values())
        termination.send(set(wrappers), signal.SIGTERM)
        others = {pid for pid in self._all() if pid not in wrappers}
        if wrappers:
            others.discard(self.gang.launcher or 0)
        termination.send({pid for pid in others if not self._in(pid, groups)}, signal.SIGTERM)

    def _wrappers(self) -> tuple[dict[int, int], set[int]]:
        """Living wrappers (pid -> rank) and the process groups of their ranks."""
        living: dict[int, int] = {}
        groups: set[int] = set()
        # Under mpirun the account of the ranks writes these records: no pid in them is signalled unless it is
        # ours.
        ours = self._all()
        for number in self._waiting_for():
            start = self._started(number) or {}
            if start.get("wrapper") in ours and proc.alive(
                start["wrapper"], start.get("wrapper_identity") or ""
            ):
                living[start["wrapper"]] = number
                groups.add(start.get("pid") or 0)
        return living | self.gang.wrappers, groups

    @staticmethod
    def _in(pid: int, groups: set[int]) -> bool:
        one = proc.process(pid)
        return one is None or one.group in groups

    def _all(self, *, marks: bool = False) -> set[int]:
        me = os.getpid()
        return termination.belonging(
            *self.folder.key, session=me, roots=frozenset({me}), marks=marks, path=self.folder.path
        )

    def _kill(self) -> None:
        """SIGKILL, ranks before their wrappers, so that these can still write how they ended."""
        late = time.monotonic() - (self.kill_at or 0)
        victims = self._all(marks=late > SPARE_WRAPPERS_S)
        if late < SPARE_WRAPPERS_S:
            victims -= set(self._wrappers()[0])
        termination.send(victims, signal.SIGKILL)
        if late > STUBBORN_S and victims:
            self.gang.warn(f"Processes {', '.join(map(str, sorted(victims)))} do not end, even by SIGKILL.")

    def _sweep(self) -> None:
        """Whoever was orphaned before we adopted orphans, or is a descendant no more, by the mark it
        carries."""
        give_up = time.monotonic() + STUBBORN_S
        while (left := self._all(marks=True)) and time.monotonic() < give_up:
            termination.send(left, signal.SIGKILL)
            time.sleep(KILL_AGAIN_S / 10)

    def _patience(self) -> float:
        if self.kill_at is not None:
            return min(LOOK_S, max(KILL_AGAIN_S, self.kill_at - time.monotonic()))
        limit = self.gang.order["timeout_s"]
        if limit is None:
            return LOOK_S
        return min(LOOK_S, max(0.0, (self.gang.running_since or 0) + limit - time.monotonic()))

    def _settle_ranks(self) -> None:
        for number in self._waiting_for():
            if self._started(number) is not None:
                told = number in self.told or self.gang.launcher is not None
                self._write_end(number, rank.ending(-signal.SIGKILL, told=told))
        status = self.gang.launcher_status
        if status is None or status == 0 or self.gang.state["stopping"] not in ("", "gang"):
            return
        if self.gang.several:
            # What the daemon of another node says about its end, or mpirun about ranks elsewhere, blames
            # nobody here.
            if not self.gang.state["stopping"] and not any(
                self._started(number) for number in self._numbers()
            ):
                self._accuse_launcher(status)
            return
        ends = {number: end for number in self._numbers() if (end := self._end_of(number)) is not None}
        failed_alone = [end for end in ends.values() if not end["by_us"] and _bad(end)]
        if len(ends) < len(self._numbers()) and not failed_alone:
            self._accuse_launcher(status)
        elif not failed_alone:
            self._blame(ends, status)

    def _accuse_launcher(self, status: int) -> None:
        name = "mpirun" if self.gang.head else "Open MPI's daemon"
        self.gang.state["error"] = (
            f"{name} exited with code {status}: {_last_line(self.folder.log(LAUNCHER_LOG))}"
        )
        self.gang.state["error_kind"] = "launch"

    def _blame(self, ends: dict[int, dict[str, Any]], status: int) -> None:
        """MPI_Abort: mpirun ends every rank, the caller too, and only its own words tell who called, and with
        what."""
        told = {number: end for number, end in ends.items() if end["by_us"] and _bad(end)}
        if not told:
            self.gang.warn(
                f"mpirun exited with code {status}, though every rank ended well; see {LAUNCHER_LOG}."
            )
            return
        first = _aborted_by(self.folder.log(LAUNCHER_LOG))
        if first not in told:
            first = min(told, key=lambda number: told[number]["at"] or 0.0)
        self._write_end(first, {**rank.ending(status, told=False), "at": told[first]["at"]})


def _bad(end: dict[str, Any]) -> bool:
    return bool(end["exit_code"] != 0 or end["signal"])


def _record(path: str, fields: Mapping[str, type]) -> dict[str, Any] | None:
    """The record at `path`; of a field that has another type than it should have, nothing. The run may have
    written it."""
    try:
        found = records.read(path, largest=65536)
    except records.Unreadable:
        return None
    if not isinstance(found, dict):
        return None
    return {
        name: found[name]
        for name, kind in fields.items()
        if name in found and isinstance(found[name], kind | None)
    }


def _aborted_by(path: str) -> int | None:
    found = ABORTED.search("\n".join(_last_lines(path)))
    return int(found[1]) if found else None


def _last_line(path: str) -> str:
    return ([line for line in _last_lines(path) if not line.startswith("---")] or ["it said nothing"])[-1]


def _last_lines(path: str) -> list[str]:
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
        return [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
