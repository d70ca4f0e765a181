"""The files that tell the ranks of a run that it is being stopped, for programs that look for a file rather
than handle SIGTERM, and for ranks whose launcher keeps the signal to itself."""

from __future__ import annotations

import os
import time

from trainhub_node import records
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.rundir import RunDir
    from trainhub_node.supervisor.gang import Gang

# In the environment of every rank, from its start: the file of every stop, and that of preemptions alone.
STOP_VARIABLE, PREEMPTION_VARIABLE = "TRAINHUB_STOP_FILE", "TRAINHUB_PREEMPTION_FILE"
# What a file calls a StopReason (trainhub_launch.states) that leaves the ranks time.
REASONS = {
    "canceled": "canceled",
    "preempted": "preempted",
    "timeout": "timeout",
    "gang": "failed",
    "outside": "outside",
}
# Whatever account the ranks have.
READABLE_BY_ALL, PASSABLE_BY_ALL = 0o644, 0o755


def make_folder(folder: RunDir) -> None:
    """Makes the folder of the files. Before the ranks start: to a rank that looks, a file is there or not,
    but never forbidden. Raises PreparationFailed."""
    try:
        os.makedirs(folder.notices, exist_ok=True)
        os.chmod(folder.notices, PASSABLE_BY_ALL)
    except OSError as error:
        reason = f"The folder {folder.notices} could not be made: {error.strerror}."
        raise PreparationFailed("launch", reason) from error


def write_notices(gang: Gang, reason: str, grace_s: float) -> None:
    """Writes the files of a stop for this StopReason, each with one line of JSON. One that leaves the ranks
    no time has none."""
    if reason not in REASONS or grace_s <= 0:
        return
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = records.dumps({"reason": REASONS[reason], "seconds_left": grace_s, "at": at}) + b"\n"
    _write(gang, gang.folder.stop_notice, line)
    if reason == "preempted":
        _write(gang, gang.folder.preemption, line)


def _write(gang: Gang, path: str, line: bytes) -> None:
    """Writes a file that appears complete, or not at all."""
    aside = f"{path}.new"
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
            os.fchmod(fd, READABLE_BY_ALL)
        finally:
            os.close(fd)
        os.rename(aside, path)
    except OSError as error:
        # The signal still comes: a full disk must not delay the stop.
        gang.warn(f"A file that announces the stop could not be written: {error.strerror}.")
