"""Waits for a program that prepares an environment, and ends it with all that it started."""

from __future__ import annotations

import os

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import Gang

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

TAIL_BYTES = 16384
STOP_CHECK_S = 0.25
TERM_GRACE_S = 3.0


def wait_for_exit(gang: Gang, pid: int, on_poll: Callable[[], None]) -> int:
    """Returns the exit code of `pid`. `on_poll` is called while it runs. Raises StopRequested."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        gang.check_stop()
        on_poll()
        # The child blocks these signals, so that none is lost between the checks above and this wait.
        signal.sigtimedwait((signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM), STOP_CHECK_S)


def end_group(pid: int) -> None:
    """Ends the program and all that it started: SIGTERM, and SIGKILL when it has ended or its grace is
    over."""
    rank.signal_group(pid, signal.SIGTERM)
    signal.sigtimedwait((signal.SIGCHLD,), TERM_GRACE_S)
    # Also where the program itself has ended: a compiler may have ignored SIGTERM. Before `waitpid`, because
    # until then no other group can get this id.
    rank.signal_group(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def log_tail(gang: Gang) -> list[str]:
    """Returns the last lines of the build log, without empty ones."""
    with open(gang.folder.log(ENVIRONMENT_LOG), "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
