"""The file that tells the ranks of a run that it is preempted, for programs that look for a file rather than
handle SIGTERM, and for ranks whose launcher keeps the signal to itself."""

from __future__ import annotations

import os
import time

from trainhub_node import records
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainhub_node.rundir import RunDir
    from trainhub_node.supervisor.gang import Gang

# In the environment of every rank, from its start.
VARIABLE = "TRAINHUB_PREEMPTION_FILE"
# Whatever account the ranks have.
READABLE_BY_ALL, PASSABLE_BY_ALL = 0o644, 0o755


def make_folder(folder: RunDir) -> None:
    """Makes the folder of the file. Before the ranks start: to a rank that looks, the file is there or not,
    but never forbidden. Raises PreparationFailed."""
    try:
        os.makedirs(folder.notices, exist_ok=True)
        os.chmod(folder.notices, PASSABLE_BY_ALL)
    except OSError as error:
        reason = f"The folder {folder.notices} could not be made: {error.strerror}."
        raise PreparationFailed("launch", reason) from error


def write_notice(gang: Gang, grace_s: float) -> None:
    """Writes the file, with one line of JSON. It appears complete, or not at all."""
    now = time.time()
    notice = {
        "reason": "preempted",
        "seconds_left": grace_s,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }
    path = gang.folder.preemption
    aside = f"{path}.new"
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, records.dumps(notice) + b"\n")
            os.fchmod(fd, READABLE_BY_ALL)
        finally:
            os.close(fd)
        os.rename(aside, path)
    except OSError as error:
        # The signal still comes: a full disk must not delay the stop.
        gang.warn(f"The file that announces the preemption could not be written: {error.strerror}.")
