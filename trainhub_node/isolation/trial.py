"""Tries whether runs of this machine can have namespaces of their own.

Only a trial tells: containers, kernels and security modules forbid them in different ways."""

from __future__ import annotations

import os
import sys

from trainhub_node.isolation import devices, mounts, namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal


def run(folder: str, uid: int) -> NoReturn:
    """Makes namespaces as for a run of the account `uid` in `folder`, which is passable, and starts a process
    in them. Prints nothing, or why that is impossible, and exits. Runs in a process of its own.

    An agent that is not root has no other account than its own."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGUSR1))
    own = f"{folder}/own"
    os.makedirs(own, exist_ok=True)
    view = mounts.View(
        own=own,
        temporary=own,
        hidden=[folder],
        visible=(),
        inputs={},
        overlays={},
        writable=(),
        files={},
        devices=devices.device_nodes(set())[0],
        shm_bytes=0,
        is_read_only=True,
    )
    try:
        if os.geteuid() == 0:
            os.chown(own, uid, uid)
        spaces = namespaces.make(lambda: mounts.arrange(view))
        use(spaces, own, uid)
    except (OSError, namespaces.NamespaceError) as error:
        sys.stdout.write(namespaces.reason(error))
        sys.stdout.flush()
    os._exit(0)


def use(spaces: namespaces.Namespaces, own: str, uid: int) -> None:
    """Starts a process of the account `uid` in the namespaces, which writes into the folder `own`, and ends
    them. Raises OSError, and NamespaceError."""
    pid = spaces.fork()
    if pid == 0:
        _write(spaces, own, uid)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        spaces.end()
        raise namespaces.NamespaceError("a process in them could not change its account or write")
    spaces.drain()
    os.waitpid(spaces.holder, 0)


def _write(spaces: namespaces.Namespaces, own: str, uid: int) -> NoReturn:
    try:
        spaces.enter()
        if os.geteuid() != uid:
            os.setgroups(())
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        for path in (f"{own}/file", "/dev/shm/file"):  # noqa: S108 - the run's own
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os._exit(0)
    finally:
        os._exit(1)
