"""The first process of a container: it gets every orphan there, and the signals that stop the container."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def run_as_init(program: Callable[[], int]) -> int:
    """Runs the program in a child, passes signals on to it, and collects orphans meanwhile. Returns the
    program's exit code; 128 and the signal's number if that has ended it."""
    # Before the fork: what comes in between must not be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # As if the program had been started by itself.
        sys.exit(program())
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: _pass_on(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _pass_on(child: int, number: int) -> None:
    # It may have just ended, which the loop notices.
    with suppress(ProcessLookupError):
        os.kill(child, number)
