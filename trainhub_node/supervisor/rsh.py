"""Stands in for mpirun's remote shell on the head: records which daemon is needed on which host, and stays.

The call goes to the hub with the head's facts, and from there to the node in question, whose child starts
its own daemon. Open MPI takes the end of its remote shell for the end of the daemon, so this process lives
as long as mpirun."""

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
HOST_PUNCTUATION = ".:_-"
USAGE_ERROR = 2


def run(path: str, arguments: Sequence[str]) -> NoReturn:
    """Records mpirun's call for a daemon, and exits when mpirun ends. Exits with USAGE_ERROR for any other
    call.

    `arguments`: the host, then the command as a shell there would receive it."""
    # Read first: should mpirun end at once, getppid() would give another process later.
    parent = os.getppid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Ended before mpirun it would look like a daemon that failed, and mpirun would kill all ranks at
        # once.
        signal.signal(number, signal.SIG_IGN)
    host, argv = arguments[0] if arguments else "", daemon_call(arguments[1:])
    if not argv or not host or not _is_host(host):
        sys.stderr.write(f"trainhub: not a call for an Open MPI daemon: {shlex.join(arguments)}\n")
        sys.stderr.flush()
        os._exit(USAGE_ERROR)
    records.write(RunDir.at(path).daemon_call(host), {"host": host, "argv": argv})
    _wait_for_end(parent)
    os._exit(0)


def _is_host(name: str) -> bool:
    return (
        len(name) <= 253
        and name.isascii()
        and all(char.isalnum() or char in HOST_PUNCTUATION for char in name)
    )


def daemon_call(command: Sequence[str]) -> list[str]:
    """Returns the daemon's argv, its name without a path first; empty if the command starts no daemon.

    Other shell commands before it are left out: each node has an environment of its own."""
    # mpirun passes a line for a shell, such as `( test ! -r ./.profile || . ./.profile; orted ... )`. It is
    # split as a shell would split it, but never given to one.
    lexer = shlex.shlex(" ".join(command), posix=True, punctuation_chars=SEPARATORS)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    start = next((index for index, token in enumerate(tokens) if os.path.basename(token) in DAEMONS), None)
    if start is None:
        return []
    end = next(
        (index for index in range(start, len(tokens)) if tokens[index].strip(SEPARATORS) == ""), len(tokens)
    )
    return [os.path.basename(tokens[start]), *tokens[start + 1 : end]]


def _wait_for_end(parent: int) -> None:
    try:
        fd = os.pidfd_open(parent)
    except ProcessLookupError:
        return
    # The parent may have ended between getppid() and pidfd_open(), and its number may belong to another
    # process.
    if os.getppid() == parent:
        select.select([fd], [], [])
