"""Ends runs that use more of the disk than they asked for, and, before the node has none left, the one that
writes most.

A look at a run's files takes time that grows with their number. So this looks at the free space often, which
costs nothing, and at files only when as much has been written, by whomever, that a run could be past its
limit."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainhub_launch.scheduler.sizes import bytes_text
from trainhub_launch.states import ErrorKind, StopReason
from trainhub_node import proc, records
from trainhub_node.attempts import attempt_list, termination
from trainhub_node.attempts.attempt_list import Attempts, Key
from trainhub_node.rundir import RunDir
from trainhub_node.untrusted import removal
from trainhub_node.untrusted.disk_usage import Unmeasurable, deleted_bytes, tree_bytes

log = logging.getLogger(__name__)
MIB, GIB = 2**20, 2**30
# Left to the node, whatever runs write: a share of the disk within bounds, but never most of a small one.
RESERVE_SHARE, LEAST_RESERVE, MOST_RESERVE, MOST_SHARE = 0.05, GIB, 64 * GIB, 0.25
# Seconds between two looks at the free space: more often the sooner something could happen.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
# What a fast disk writes in a second, until more has been seen.
EXPECTED_RATE = GIB
# A look at files is followed by a pause of so many times the time that it took; the shorter one while space
# is scarce.
REST, SHORT_REST = 20, 4
# Files are looked at after this time even if the free space tells nothing: others may have freed as much.
# Again, trees that take long less often.
RELOOK_S, RELOOK_REST = 30.0, 100
# A run that has grown by less since space became scarce is not the one that fills the disk.
LEAST_GROWTH = 16 * MIB
DISCARD_PAUSE_S = 10.0


@dataclass
class WatchedRun:
    """A run with what was seen of its disk. `written`: how much the free space has shrunk since its files
    were looked at; `base`: what they took when the free space came near the reserve, None while it is not.
    `is_over`: it writes no more; `is_stopped`: because of this watch."""

    folder: RunDir
    limit: int | None
    used: int | None = None
    base: int | None = None
    written: int = 0
    seen_at: float = float("-inf")
    cost_s: float = 0.0
    is_over: bool = False
    is_stopped: bool = False

    def is_due(self, now: float, *, is_near: bool, is_scarce: bool) -> bool:
        since = now - self.seen_at
        if self.is_over or since < self.cost_s * (SHORT_REST if is_near else REST):
            return False
        if is_near and (self.base is None or (is_scarce and self.written > 0)):
            return True
        if self.limit is None:
            return False
        # Half of it: others may have freed as much meanwhile.
        has_room = self.used is not None and self.written < (self.limit - self.used) / 2
        return not has_room or since > max(RELOOK_S, self.cost_s * RELOOK_REST)

    @property
    def growth(self) -> int:
        return (self.used or 0) - self.base if self.base is not None else 0

    @property
    def is_past_limit(self) -> bool:
        return self.limit is not None and self.used is not None and self.used > self.limit


class DiskWatch:
    """Watches the file system of the agent's folder in a thread of its own. `node`: the name for sentences.
    `on_change` is called after a run has been ended."""

    def __init__(self, attempts: Attempts, folder: Path, node: str, *, on_change: Callable[[], None]) -> None:
        self._attempts = attempts
        self._folder = folder
        self._node = node
        self._on_change = on_change
        self._runs: dict[Key, WatchedRun] = {}
        self._free = 0
        self._discarded_at = float("-inf")
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disk", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _run(self) -> None:
        pause_s = 0.0
        while not self._closing.wait(pause_s):
            try:
                pause_s = self._look(time.monotonic())
            except Exception:
                # Such as a disk without any space for the record of an end: the next look tries again.
                log.exception("The disk could not be watched; it is tried again")
                pause_s = LONGEST_PAUSE_S

    def _look(self, now: float) -> float:
        """Looks at the disk once. Returns the seconds until the next look."""
        self._sync()
        total, free = _space(self._folder)
        written, self._free = max(0, self._free - free), free
        floor = self._floor(reserve_bytes(total))
        is_near, is_scarce = free < 2 * floor, free < floor
        for run in self._runs.values():
            run.written += written
            if not is_near:
                run.base = None
            if run.is_due(now, is_near=is_near, is_scarce=is_scarce):
                self._measure(run)
                if is_near and run.base is None:
                    run.base = run.used
                if run.is_past_limit:
                    self._end_past_limit(run)
        if is_scarce:
            self._make_room(now)
        return self._pause_s(written, free - floor)

    def _sync(self) -> None:
        """Takes up new runs, and drops those that are settled. One that was stopped for its disk stays until
        its files are gone."""
        tracked = {folder.key: folder for folder in self._attempts.all()}
        for key, folder in tracked.items():
            if key not in self._runs:
                self._runs[key] = WatchedRun(folder, _limit(folder))
        for key, run in list(self._runs.items()):
            if key not in tracked and not (run.is_stopped and os.path.exists(run.folder.path)):
                del self._runs[key]

    def _floor(self, reserve: int) -> int:
        """Returns the free space below which a run is ended. It is lower while what an ended run wrote is
        still there: others must not pay for that at once."""
        return reserve >> min(3, sum(run.is_stopped for run in self._runs.values()))

    def _measure(self, run: WatchedRun) -> None:
        started = time.monotonic()
        try:
            device = os.stat(run.folder.path).st_dev
            used = tree_bytes(run.folder.path) + deleted_bytes(_processes(run.folder), device)
        except FileNotFoundError:
            return  # deleted meanwhile
        except Unmeasurable:
            sentence = "Its folders lie in each other so deep that their size cannot be measured"
            self._end(run, ErrorKind.DISK_LIMIT, f"{sentence} on {self._node}.")
            return
        run.used, run.written, run.seen_at = used, 0, time.monotonic()
        run.cost_s = run.seen_at - started

    def _make_room(self, now: float) -> None:
        """Deletes what nobody needs any more, then ends the run that grows most; one that asked for disk and
        has not used it up, only if no other grows."""
        if now - self._discarded_at > DISCARD_PAUSE_S:
            self._discarded_at = now
            discarded = self._attempts.discard_old(now=time.time(), retention_s=0)
            for run in self._runs.values():
                if run.is_stopped and _has_ended(run.folder):
                    removal.remove_tree(run.folder.temporary)
            if discarded:
                return  # the next look shows whether that was enough
        growing = [run for run in self._runs.values() if not run.is_over and run.growth >= LEAST_GROWTH]
        if not growing:
            return
        worst = max(growing, key=lambda run: (run.limit is None, run.growth))
        self._end(
            worst,
            ErrorKind.DISK_FULL,
            f"The disk of {self._node} was nearly full, with {bytes_text(self._free)} free, and this run was "
            f"the one that wrote most; it used {bytes_text(worst.used or 0)}.",
        )

    def _end_past_limit(self, run: WatchedRun) -> None:
        self._end(
            run,
            ErrorKind.DISK_LIMIT,
            f"The run used {bytes_text(run.used or 0)} of disk on {self._node}; it asked for "
            f"{bytes_text(run.limit or 0)}.",
        )

    def _end(self, run: WatchedRun, kind: ErrorKind, sentence: str) -> None:
        if not _has_ended(run.folder):
            log.warning("Run %s, attempt %d is ended: %s", run.folder.run, run.folder.attempt, sentence)
            # Without a grace: it would write on.
            is_new = attempt_list.request_stop(
                run.folder, StopReason.DISK, 0.0, error=sentence, error_kind=kind
            )
            is_first = is_new and not (attempt_list.read_state(run.folder) or {}).get("stopping")
            # From now on it writes no more, however long its child takes to end it. Killed here if it is
            # being stopped already, with a grace.
            termination.send_signal(_ranks(run.folder), signal.SIGSTOP if is_first else signal.SIGKILL)
            attempt_list.wake_child(run.folder)
            run.is_stopped = True
            self._on_change()
        run.is_over = True

    def _pause_s(self, written: int, distance: int) -> float:
        """Returns a pause in which not more than half of the way to the next boundary can be written."""
        living = [run for run in self._runs.values() if not run.is_over]
        if not living:
            return LONGEST_PAUSE_S
        rooms = [distance]
        rooms += [
            (run.limit - run.used) // 2 - run.written
            for run in living
            if run.limit is not None and run.used is not None
        ]
        seconds = min(rooms) / 2 / max(EXPECTED_RATE, written / SHORTEST_PAUSE_S)
        return min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, seconds))


def reserve_bytes(total: int) -> int:
    """Returns how much of a disk of `total` bytes is left to the node."""
    share = min(MOST_RESERVE, max(LEAST_RESERVE, int(total * RESERVE_SHARE)))
    return min(share, int(total * MOST_SHARE))


def _space(folder: Path) -> tuple[int, int]:
    """Returns the size of the file system, and what is free for accounts other than root."""
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def _limit(folder: RunDir) -> int | None:
    limit: int | None = (records.read(folder.order) or {}).get("disk_bytes")
    return limit


def _has_ended(folder: RunDir) -> bool:
    return bool((attempt_list.read_state(folder) or {}).get("ended"))


def _processes(folder: RunDir) -> set[int]:
    """Returns the living processes of the attempt without its child."""
    child = attempt_list.read_child(folder)
    if child is None:
        return set()
    return termination.attempt_processes(
        *folder.key, session=child["pid"], roots=frozenset({child["pid"]}), marks=False
    )


def _ranks(folder: RunDir) -> set[int]:
    """Returns its processes without those that record how its ranks end, which are children of the child."""
    child = attempt_list.read_child(folder)
    return _processes(folder) - set(proc.child_pids(child["pid"]) if child is not None else ())
