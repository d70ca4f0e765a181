"""What mpirun, on the head, takes for its remote shell: it writes down which daemon is wanted where, and
stays.

The call goes to the hub with the head's facts, and from there to the node in question, whose child starts its
own daemon. Open MPI takes the end of its remote shell for the end of the daemon, so this one lives as long as
mpirun."""

from __future__ import annotations

import os
import select
import shlex
import signal
import sys

from trainhub_node import records
from trainhub_node.rundir import RunDir
from trainhub_node.supervisor.openmpi import DAEMONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

SEPARATORS = ";()"
IN_A_HOST = ".:_-"
BAD_CALL = 2


def stay(path: str, words: Sequence[str]) -> NoReturn:
    """`words`: the host, then the command as a shell there would get it."""
    parent = os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Ended before mpirun it would look like a daemon that failed, and mpirun would kill all ranks at
        # once.
        signal.signal(number, signal.SIG_IGN)
    host, argv = words[0] if words else "", daemon(words[1:])
    if not argv or not host or not _is_host(host):
        sys.stderr.write(f"trainhub: not a call for an Open MPI daemon: {shlex.join(words)}\n")
        sys.stderr.flush()
        os._exit(BAD_CALL)
    records.write(RunDir.at(path).daemon_call(host), {"host": host, "argv": argv})
    _outlive(parent)
    os._exit(0)


def _is_host(name: str) -> bool:
    return len(name) <= 253 and name.isascii() and all(char.isalnum() or char in IN_A_HOST for char in name)


def daemon(words: Sequence[str]) -> list[str]:
    """The daemon's argv, its own name without a path first; empty where none is called.

    What a shell would do before it is left out: each node has an environment of its own.
    """
    lexer = shlex.shlex(" ".join(words), posix=True, punctuation_chars=SEPARATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        found = list(lexer)
    except ValueError:
        return []
    start = next((place for place, word in enumerate(found) if os.path.basename(word) in DAEMONS), None)
    if start is None:
        return []
    end = next(
        (place for place in range(start, len(found)) if found[place].strip(SEPARATORS) == ""), len(found)
    )
    return [os.path.basename(found[start]), *found[start + 1 : end]]


def _outlive(parent: int) -> None:
    try:
        fd = os.pidfd_open(parent)
    except ProcessLookupError:
        return
    if os.getppid() == parent:
        select.select([fd], [], [])
