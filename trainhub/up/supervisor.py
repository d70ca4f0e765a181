"""Keeps children alive until told to stop, then stops them stage by stage."""

from __future__ import annotations

import select
import signal
import socket
import time
from collections.abc import Sequence
from types import FrameType

from trainhub.up.children import Child
from trainhub.up.console import Stop, say

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_S = 12.0
LOG_CHECK_S = 30.0
"""How often the size of logs is looked at that their writers do not rotate themselves."""


class Supervisor:
    """One thread that sleeps until a signal, a child's death, a planned restart or the next look at the
    logs."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.asked_to_stop = 0
        self._wakeup, self._waker = socket.socketpair()
        self._wakeup.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, child: Child) -> None:
        self.children.append(child)
        child.start()

    def sleep(self, seconds: float | None) -> None:
        """Until something happens, at most `seconds`."""
        ready, _, _ = select.select([self._wakeup], [], [], seconds)
        if ready:
            self._wakeup.recv(4096)

    def tend(self) -> None:
        """Bury the dead, restart those whose time has come; raises Stop when one dies at once again and
        again."""
        for child in self.children:
            child.tend_log()
            if child.restart_at is None and not child.alive:
                how = child.died()
                if child.hopeless:
                    times = f"right after each of {child.quick_deaths} starts"
                    raise Stop(
                        f"The {child.title} {how} {times}. It last wrote ({child.log}):\n{child.tail()}"
                    )
                say(f"The {child.title} {how}; starting it again.")
            if child.restart_at is not None and time.monotonic() >= child.restart_at:
                child.start()

    def keep(self) -> None:
        while not self.asked_to_stop:
            self.tend()
            self.sleep(self.seconds_until_due())

    def seconds_until_due(self) -> float:
        """Until the next planned restart or look at the logs."""
        due = [child.restart_at for child in self.children if child.restart_at is not None]
        return max(0.0, min([*due, time.monotonic() + LOG_CHECK_S]) - time.monotonic())

    def stop(self) -> None:
        """End all children, the highest stage first; a second Ctrl-C or the grace's end makes it short."""
        asked = self.asked_to_stop
        for stage in sorted({child.stage for child in self.children}, reverse=True):
            group = [child for child in self.children if child.stage == stage]
            for child in group:
                child.send(signal.SIGTERM)
            if not self._gone(group, time.monotonic() + GRACE_S, asked):
                for child in group:
                    child.send(signal.SIGKILL)
                self._gone(group, time.monotonic() + GRACE_S, None)
            for child in group:
                child.pid_file.unlink(missing_ok=True)

    def _gone(self, group: Sequence[Child], deadline: float, asked: int | None) -> bool:
        while any(child.alive for child in group):
            left = deadline - time.monotonic()
            if left <= 0 or (asked is not None and self.asked_to_stop > asked):
                return False
            self.sleep(left)
        return True

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.asked_to_stop += 1
