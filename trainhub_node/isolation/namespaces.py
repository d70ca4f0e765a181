"""The namespaces of an attempt on one node: processes, mounts, and shared memory.

All ranks of the attempt share them, so that NCCL, gloo and Open MPI reach each other as without. A process
of ours, the holder, is process 1 in them: it only reaps orphans, and when it dies, the kernel ends all
others."""

from __future__ import annotations

import os

from trainhub_node.isolation import mounts, syscalls
from trainhub_node.isolation.syscalls import CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWPID

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

READY = b"ready"
MAX_MESSAGE_BYTES = 4096
KINDS = {"mnt": CLONE_NEWNS, "ipc": CLONE_NEWIPC, "pid": CLONE_NEWPID}


class NamespaceError(Exception):
    """The namespaces could not be made; the message says why, as a part of a sentence."""


class Namespaces:
    """Those of one attempt. `holder`: the process id of its process 1, as seen from outside."""

    def __init__(self, holder: int) -> None:
        self.holder = holder
        self._descriptors = {
            kind: os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in KINDS
        }
        self._own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self) -> int:
        """Forks a process into the namespace of processes, and returns as `os.fork`. This process, its
        parent, stays outside."""
        syscalls.setns(self._descriptors["pid"], CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                syscalls.setns(self._own_processes, CLONE_NEWPID)
        return pid

    def enter(self) -> None:
        """Moves this process, which `fork` has made, to the mounts and the shared memory of the attempt."""
        syscalls.setns(self._descriptors["ipc"], CLONE_NEWIPC)
        syscalls.setns(self._descriptors["mnt"], CLONE_NEWNS)
        syscalls.forbid_new_privileges()

    def drain(self) -> None:
        """Ends the holder as soon as it has no children."""
        os.kill(self.holder, signal.SIGUSR1)


def make(view: mounts.View) -> Namespaces:
    """Makes the namespaces, with a holder that is a child of this process. SIGUSR1 and SIGCHLD must be
    blocked here. Raises NamespaceError."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        syscalls.unshare(CLONE_NEWPID)
        try:
            holder = os.fork()
            if holder == 0:
                _hold(view, writing)
        finally:
            syscalls.setns(own, CLONE_NEWPID)
    except OSError as error:
        os.close(reading)
        raise NamespaceError(str(error)) from error
    finally:
        os.close(own)
        os.close(writing)
    message = _read_all(reading)
    if message != READY:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        raise NamespaceError(message.decode(errors="replace") or "the process that holds them ended at once")
    return Namespaces(holder)


def _hold(view: mounts.View, writing: int) -> NoReturn:
    """Is process 1 of the new namespaces. Never returns."""
    try:
        # The places for mounts must be passable for the account of the run, but need not be listed.
        os.umask(0o066)
        os.chdir("/")
        syscalls.unshare(CLONE_NEWNS | CLONE_NEWIPC)
        mounts.arrange(view)
        os.write(writing, READY)
        os.close(writing)
        _reap()
    except BaseException as error:
        os.write(writing, str(error).encode(errors="replace")[:MAX_MESSAGE_BYTES])
    finally:
        os._exit(1)


def _reap() -> None:
    """Waits for orphans, until `drain` is requested and none is left."""
    is_draining = False
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if is_draining:
                return
        is_draining |= signal.sigwait((signal.SIGCHLD, signal.SIGUSR1)) == signal.SIGUSR1


def _read_all(reading: int) -> bytes:
    pieces = []
    while piece := os.read(reading, MAX_MESSAGE_BYTES):
        pieces.append(piece)
    os.close(reading)
    return b"".join(pieces)
