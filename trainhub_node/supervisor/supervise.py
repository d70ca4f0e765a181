"""The child, second half: waits for the ranks, ends them when necessary, and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any, NoReturn

from trainhub_launch.log_names import LAUNCHER_LOG
from trainhub_node import proc, records
from trainhub_node.attempts import termination
from trainhub_node.isolation import syscalls
from trainhub_node.supervisor import limit_report, rank, stop_notices
from trainhub_node.supervisor.child import SIGNALS
from trainhub_node.supervisor.gang import Gang
from trainhub_node.supervisor.package_record import PackageRecord
from trainhub_node.supervisor.start_records import StartRecords, read_record

POLL_S = 1.0
KILL_INTERVAL_S = 0.2
WRAPPER_GRACE_S = 2.0
LEFTOVER_GRACE_S = 5.0
KILL_TIMEOUT_S = 30.0
ENDED_FIELDS = {"at": float, "exit_code": int, "signal": int, "by_us": bool, "out_of_memory": bool}
# What Open MPI prints when a rank calls MPI_Abort; the number is the rank that called it, not one of those
# that mpirun killed afterwards.
ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+)")


def supervise(gang: Gang) -> NoReturn:
    syscalls.adopt_orphans()
    if gang.running_since is not None:
        _Supervisor(gang).run()
    elif gang.namespaces is not None:
        gang.namespaces.end()
    limit_report.report(gang)
    gang.end()
    os._exit(0)


class _Supervisor:
    """Supervises started ranks. `kill_at`: when SIGKILL follows; None while no stop is in progress."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self.folder = gang.folder
        self.end_records: dict[int, dict[str, object]] = {}
        self.signalled: set[int] = set()
        self.kill_at: float | None = None
        self.has_no_children = False
        self.starts = StartRecords(gang)
        self.packages = PackageRecord(gang)

    def run(self) -> None:
        while True:
            self._reap()
            self.starts.translate()
            if self.has_no_children:
                break
            self.packages.start_if_due()
            if self.gang.references is not None:
                self.gang.references.renew_if_due()
            self._stop_if_due()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self._kill()
            signal.sigtimedwait(SIGNALS, self._poll_timeout())
        self._kill_leftovers()
        self._finish_end_records()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                # The record of a run that ended soon is made at its end.
                self.has_no_children = not self.packages.start()
                return
            if pid == 0:
                self._end_namespaces()
                return
            self._record_end(pid, os.waitstatus_to_exitcode(status))

    def _end_namespaces(self) -> None:
        """Lets the holder of the namespaces end once it is our only child: everything else that lives in them
        has it for an ancestor then, and keeps it alive."""
        namespaces, gang = self.gang.namespaces, self.gang
        is_launched = gang.launcher is not None and gang.launcher_status is None
        if namespaces is None or gang.wrappers or is_launched:
            return
        # The record of the packages needs the namespaces, too: it is our child while it is made.
        if proc.child_pids(os.getpid()) == [namespaces.holder] and not self.packages.start():
            namespaces.drain()

    def _record_end(self, pid: int, code: int) -> None:
        if pid == self.gang.launcher:
            self.gang.launcher_status = code
            return
        number = self.gang.wrappers.pop(pid, None)
        if number is None:
            # A rank that outlived its wrapper has become our child.
            number = next(
                (n for n in self._rank_numbers() if (self._start_record(n) or {}).get("pid") == pid), None
            )
            if number is not None and self._end_record(number) is None:
                by_us = number in self.signalled or self.kill_at is not None or self.gang.launcher is not None
                self._write_end_record(number, rank.end_record(code, by_us=by_us))
        elif self._end_record(number) is None and self._start_record(number) is None:
            self._write_end_record(number, rank.end_record(code, by_us=False))

    def _rank_numbers(self) -> list[int]:
        return [process["rank"] for process in self.gang.processes]

    def _start_record(self, number: int) -> dict[str, Any] | None:
        return self.starts.read(number)

    def _write_end_record(self, number: int, end: dict[str, object]) -> None:
        """Writes outside the wrappers' folder: under MPI the run owns that, and could block us by a pipe."""
        records.write(self.folder.supervisor_ended(number), end)

    def _end_record(self, number: int) -> dict[str, object] | None:
        if number not in self.end_records:
            record = read_record(self.folder.supervisor_ended(number), ENDED_FIELDS)
            record = record or read_record(self.folder.ended(number), ENDED_FIELDS)
            if record is None:
                return None
            self.end_records[number] = {**rank.end_record(-signal.SIGKILL, by_us=False), **record}
        return self.end_records[number]

    def _stop_if_due(self) -> None:
        if self.kill_at is not None:
            return
        gang = self.gang
        request = gang.stop_request()
        if request is not None:
            self._stop(request["why"], float(request["grace_s"]))
        elif self._is_timed_out():
            self._stop("timeout", gang.grace_s)
        elif self._has_failed_rank():
            self._stop("gang", gang.grace_s)
        elif self._is_decided():
            self._stop("", gang.grace_s if self._unfinished() else min(gang.grace_s, LEFTOVER_GRACE_S))

    def _is_timed_out(self) -> bool:
        limit = self.gang.order["timeout_s"]
        return limit is not None and time.monotonic() >= (self.gang.running_since or 0) + limit

    def _has_failed_rank(self) -> bool:
        """Returns whether a deciding rank failed. While mpirun runs, it ends the other ranks itself."""
        if self.gang.launcher is not None and self.gang.launcher_status is None:
            return False
        ends = [self._end_record(process["rank"]) for process in self.gang.processes if process["decides"]]
        return any(end is not None and _is_failure(end) for end in ends)

    def _is_decided(self) -> bool:
        if self.gang.launcher is not None:
            return self.gang.launcher_status is not None
        deciding = [process["rank"] for process in self.gang.processes if process["decides"]]
        if not deciding and self.gang.is_multi_node:
            # These ranks serve one on another node: only the hub knows when that one is done.
            deciding = self._rank_numbers()
        return not any(self._end_record(number) is None for number in deciding)

    def _unfinished(self) -> list[int]:
        return [number for number in self._rank_numbers() if self._end_record(number) is None]

    def _stop(self, reason: str, grace_s: float) -> None:
        """Sends SIGTERM to ranks through their wrappers, which record it, and to processes that left their
        groups directly."""
        self.gang.state["stopping"] = reason
        self.gang.state["stopping_at"] = time.time()
        self.gang.save()
        self.kill_at = time.monotonic() + grace_s
        stop_notices.write_notices(self.gang, reason, grace_s)
        wrappers, groups = self._living_wrappers()
        self.signalled |= set(wrappers.values())
        if reason == "outside" and not self.gang.uses_image:
            return  # all were told from outside; some take a second signal for an order not to save
        termination.send_signal(set(wrappers), signal.SIGTERM)
        others = {pid for pid in self._all_processes() if pid not in wrappers}
        if wrappers:
            others.discard(self.gang.launcher or 0)
        strays = {pid for pid in others if not self._is_in_groups(pid, groups)}
        termination.send_signal(strays, signal.SIGTERM)

    def _living_wrappers(self) -> tuple[dict[int, int], set[int]]:
        """Returns living wrappers (process id -> rank) and the process groups of their ranks."""
        living: dict[int, int] = {}
        groups: set[int] = set()
        # Under mpirun the account of the ranks writes these records: a pid in them is signalled only if it
        # belongs to this attempt.
        processes = self._all_processes()
        for number in self._unfinished():
            start = self._start_record(number) or {}
            if start.get("wrapper") in processes and proc.is_alive(
                start["wrapper"], start.get("wrapper_identity") or ""
            ):
                living[start["wrapper"]] = number
                groups.add(start.get("pid") or 0)
        return living | self.gang.wrappers, groups

    @staticmethod
    def _is_in_groups(pid: int, groups: set[int]) -> bool:
        process = proc.read_process(pid)
        return process is None or process.group in groups

    def _all_processes(self, *, marks: bool = False) -> set[int]:
        me = os.getpid()
        return termination.attempt_processes(
            *self.folder.key, session=me, roots=frozenset({me}), marks=marks, path=self.folder.path
        )

    def _kill(self) -> None:
        """Sends SIGKILL to ranks before their wrappers, so that wrappers can still record how they ended."""
        overdue_s = time.monotonic() - (self.kill_at or 0)
        victims = self._all_processes(marks=overdue_s > WRAPPER_GRACE_S)
        if overdue_s < WRAPPER_GRACE_S:
            victims -= set(self._living_wrappers()[0])
            if self.gang.namespaces is not None and self.gang.uses_mpi:
                # Wrappers that mpirun has started live in the namespaces, and would end with their holder.
                victims.discard(self.gang.namespaces.holder)
        termination.send_signal(victims, signal.SIGKILL)
        if overdue_s > KILL_TIMEOUT_S and victims:
            self.gang.warn(f"Processes {', '.join(map(str, sorted(victims)))} do not end, even by SIGKILL.")

    def _kill_leftovers(self) -> None:
        """Kills, by the mark in their environment, processes that are not our descendants."""
        deadline = time.monotonic() + KILL_TIMEOUT_S
        while (leftovers := self._all_processes(marks=True)) and time.monotonic() < deadline:
            termination.send_signal(leftovers, signal.SIGKILL)
            time.sleep(KILL_INTERVAL_S / 10)

    def _poll_timeout(self) -> float:
        if self.kill_at is not None:
            return min(POLL_S, max(KILL_INTERVAL_S, self.kill_at - time.monotonic()))
        limit: float | None = self.gang.order["timeout_s"]
        if limit is None:
            return POLL_S
        return min(POLL_S, max(0.0, (self.gang.running_since or 0) + limit - time.monotonic()))

    def _finish_end_records(self) -> None:
        for number in self._unfinished():
            if self._start_record(number) is not None:
                by_us = number in self.signalled or self.gang.launcher is not None
                self._write_end_record(number, rank.end_record(-signal.SIGKILL, by_us=by_us))
        status = self.gang.launcher_status
        if status is None or status == 0 or self.gang.state["stopping"] not in ("", "gang"):
            return
        if self.gang.is_multi_node:
            # A status of another daemon, or of mpirun about ranks elsewhere, is no failure of a rank here.
            if not self.gang.state["stopping"] and not any(map(self._start_record, self._rank_numbers())):
                self._record_launcher_error(status)
            return
        ends = {n: end for n in self._rank_numbers() if (end := self._end_record(n)) is not None}
        own_failures = [end for end in ends.values() if not end["by_us"] and _is_failure(end)]
        if len(ends) < len(self._rank_numbers()) and not own_failures:
            self._record_launcher_error(status)
        elif not own_failures:
            self._record_abort(ends, status)

    def _record_launcher_error(self, status: int) -> None:
        name = "mpirun" if self.gang.is_head else "Open MPI's daemon"
        self.gang.state["error"] = (
            f"{name} exited with code {status}: {_last_line(self.folder.log(LAUNCHER_LOG))}"
        )
        self.gang.state["error_kind"] = "launch"

    def _record_abort(self, ends: dict[int, dict[str, Any]], status: int) -> None:
        """After MPI_Abort mpirun ends every rank. Only its own output names the rank that called it, and
        the code."""
        candidates = {number: end for number, end in ends.items() if end["by_us"] and _is_failure(end)}
        if not candidates:
            self.gang.warn(
                f"mpirun exited with code {status}, though every rank ended well; see {LAUNCHER_LOG}."
            )
            return
        first = _aborting_rank(self.folder.log(LAUNCHER_LOG))
        if first not in candidates:
            first = min(candidates, key=lambda number: candidates[number]["at"] or 0.0)
        self._write_end_record(first, {**rank.end_record(status, by_us=False), "at": candidates[first]["at"]})


def _is_failure(end: dict[str, object]) -> bool:
    return bool(end["exit_code"] != 0 or end["signal"])


def _aborting_rank(path: str) -> int | None:
    match = ABORTED.search("\n".join(_last_lines(path)))
    return int(match[1]) if match else None


def _last_line(path: str) -> str:
    return ([line for line in _last_lines(path) if not line.startswith("---")] or ["it wrote no message"])[-1]


def _last_lines(path: str) -> list[str]:
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
        return [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
