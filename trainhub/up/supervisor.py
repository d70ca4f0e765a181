"""Keeps children running until a stop is requested, then stops them stage by stage."""

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
# How often the size of logs is checked that their writers do not rotate themselves.
LOG_CHECK_S = 30.0


class Supervisor:
    """Supervises children in one thread, which sleeps until a signal, a child's death, a planned restart or
    the next check of the logs."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.stop_requests = 0
        self._wakeup, self._waker = socket.socketpair()
        self._wakeup.setblocking(False)
        self._waker.setblocking(False)
        # Signals write to this socket, so that `select` also wakes up for one that arrives just before it.
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        # A handler must be set: signals that are ignored by default wake nothing up.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, child: Child) -> None:
        self.children.append(child)
        child.start()

    def sleep(self, seconds: float | None) -> None:
        """Sleeps until a signal arrives, at most `seconds`; None = without limit."""
        ready, _, _ = select.select([self._wakeup], [], [], seconds)
        if ready:
            self._wakeup.recv(4096)

    def tend(self) -> None:
        """Notices dead children and restarts those whose pause is over. Raises Stop if one dies right after
        each of several starts."""
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
        while not self.stop_requests:
            self.tend()
            self.sleep(self.seconds_until_due())

    def seconds_until_due(self) -> float:
        """Returns the seconds until the next planned restart or check of the logs."""
        due = [child.restart_at for child in self.children if child.restart_at is not None]
        return max(0.0, min([*due, time.monotonic() + LOG_CHECK_S]) - time.monotonic())

    def stop(self) -> None:
        """Ends all children, the highest stage first. A second Ctrl-C or the end of the grace period kills
        those that still run."""
        # The requests up to now; one more while this waits is a second Ctrl-C.
        requests = self.stop_requests
        for stage in sorted({child.stage for child in self.children}, reverse=True):
            group = [child for child in self.children if child.stage == stage]
            for child in group:
                child.send(signal.SIGTERM)
            if not self._have_ended(group, time.monotonic() + GRACE_S, requests):
                for child in group:
                    child.send(signal.SIGKILL)
                self._have_ended(group, time.monotonic() + GRACE_S, None)
            for child in group:
                child.pid_file.unlink(missing_ok=True)

    def _have_ended(self, group: Sequence[Child], deadline: float, requests: int | None) -> bool:
        while any(child.alive for child in group):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or (requests is not None and self.stop_requests > requests):
                return False
            self.sleep(remaining)
        return True

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requests += 1
