"""Records once per attempt which packages the ranks really have, for the hub to keep with the run.

It happens beside the ranks, in a process of its own: reading hundreds of files from a slow disk must delay
no rank. The priority is a little lower only, because a run ends after it: with the lowest one it would take
seconds of a machine with other work, for 5 ms of a processor."""

from __future__ import annotations

import os
import time

from trainhub_launch.log_names import PACKAGES_FILE
from trainhub_node import records
from trainhub_node.supervisor import gang as gangs
from trainhub_node.supervisor import rank, site_packages, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from trainhub_node.supervisor.gang import Gang

# The ranks import their packages in the first seconds.
AFTER_S = 2.0
NICENESS = 5
READ_BYTES = 65536
MAX_RECORD_BYTES = 4 * 1024 * 1024


class PackageRecord:
    """Starts the process that writes the record, at most once, as a child of this one."""

    def __init__(self, gang: Gang) -> None:
        self._gang = gang
        # An order to build starts no ranks, and a command in an image needs no Python.
        self._is_started = gang.order.get("kind", "run") != "run" or not gang.python

    def start_if_due(self) -> None:
        if time.monotonic() - (self._gang.running_since or 0.0) >= AFTER_S:
            self.start()

    def start(self) -> bool:
        """Returns whether it has started the process now."""
        if self._is_started:
            return False
        self._is_started = True
        try:
            pid = os.fork()
        except OSError as error:
            self._gang.log(f"The installed packages could not be listed: {error.strerror}.")
            return False
        if pid == 0:
            _record(self._gang)
        return True


def _record(gang: Gang) -> NoReturn:
    try:
        os.nice(NICENESS)
        content = _read_as_ranks(gang)
        if content:
            gangs.append_to_file(gang.folder.log(PACKAGES_FILE), content)
        else:
            gang.log("The installed packages could not be listed.")
    except BaseException as error:
        gang.log(f"The installed packages could not be listed: {error!r}")
    finally:
        os._exit(0)


def _read_as_ranks(gang: Gang) -> bytes:
    """Returns the record as the ranks would read it: with their mounts and as their account."""
    planned = gang.processes[0]["env"] if gang.processes else {}
    environment = variables.process_environment(gang, planned, gang.python)
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = os.fork() if gang.namespaces is None else gang.namespaces.fork()
    if pid == 0:
        try:
            if gang.namespaces is not None:
                gang.namespaces.enter()
            rank.switch_account(gang.terms["account"])
            _write_all(writing, records.dumps(site_packages.read_packages(gang.python, environment)))
        finally:
            os._exit(0)
    os.close(writing)
    content = b""
    while piece := os.read(reading, READ_BYTES):
        content += piece
        if len(content) > MAX_RECORD_BYTES:
            raise ValueError("the list is too long")
    os.close(reading)
    os.waitpid(pid, 0)
    return content


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
