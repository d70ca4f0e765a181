"""The namespaces of an attempt on one node: processes, mounts, and shared memory.

All ranks of the attempt share them, so that NCCL, gloo and Open MPI reach each other as without. A process
of ours, the holder, is process 1 in them: it only reaps orphans, and when it dies, the kernel ends all
others.

An agent that is not root makes a user namespace first, in which its account may make the others. The holder
keeps the capabilities that it has there, so that no rank, which has none, may trace it."""

from __future__ import annotations

import os

from trainhub_node.isolation import syscalls
from trainhub_node.isolation.syscalls import CLONE_NEWIPC, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn
else:
    import _signal as signal  # `signal` itself builds enums for 5 ms

READY = b"ready"
MAX_MESSAGE_BYTES = 4096
KINDS = {"mnt": CLONE_NEWNS, "ipc": CLONE_NEWIPC, "pid": CLONE_NEWPID}


class NamespaceError(Exception):
    """The namespaces could not be made; the message says why, as a part of a sentence."""


class Namespaces:
    """Those of one attempt. `holder`: the process id of its process 1, as seen from outside. `has_user`:
    whether they lie in a user namespace of their own. `drops_capabilities`: whether who enters loses all
    capabilities at once, and not by changing its account."""

    def __init__(self, holder: int, *, has_user: bool, drops_capabilities: bool) -> None:
        self.holder = holder
        kinds = ("user", *KINDS) if has_user else KINDS
        self._descriptors = {
            kind: os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds
        }
        self._has_user = has_user
        self._drops_capabilities = drops_capabilities
        self._own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self) -> int:
        """Forks a process into the namespace of processes, and returns as `os.fork`. This process, its
        parent, stays outside. Raises OSError, and NamespaceError."""
        if self._has_user:
            return _fork_through(self._join_processes)
        syscalls.setns(self._descriptors["pid"], CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                syscalls.setns(self._own_processes, CLONE_NEWPID)
        return pid

    def _join_processes(self) -> None:
        syscalls.setns(self._descriptors["user"], CLONE_NEWUSER)
        syscalls.setns(self._descriptors["pid"], CLONE_NEWPID)

    def enter(self) -> None:
        """Moves this process, which `fork` has made, to the mounts and the shared memory of the attempt."""
        syscalls.setns(self._descriptors["ipc"], CLONE_NEWIPC)
        syscalls.setns(self._descriptors["mnt"], CLONE_NEWNS)
        if self._drops_capabilities:
            syscalls.drop_capabilities()
        else:
            syscalls.drop_bounding_set()
        syscalls.forbid_new_privileges()

    def drain(self) -> None:
        """Ends the holder as soon as it has no children."""
        os.kill(self.holder, signal.SIGUSR1)

    def end(self) -> None:
        """Ends all processes in the namespaces. Only for those in which no rank has been started."""
        os.kill(self.holder, signal.SIGKILL)
        os.waitpid(self.holder, 0)


def make(
    arrange: Callable[[], None],
    unshare_processes: Callable[[], None] | None = None,
    *,
    drops_capabilities: bool = False,
) -> Namespaces:
    """Makes the namespaces, with a holder that is a child of this process and first calls `arrange` for its
    mounts. SIGUSR1 and SIGCHLD must be blocked here. Raises NamespaceError.

    `unshare_processes`: how an account that is not root comes to a namespace of processes, if not by a user
    namespace of its own. `drops_capabilities`: see Namespaces."""
    has_user = os.geteuid() != 0
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        holder = _fork_through(unshare_processes or _unshare_processes) if has_user else _fork_holder()
        if holder == 0:
            _hold(arrange, writing)
    except (OSError, NamespaceError) as error:
        os.close(reading)
        raise NamespaceError(reason(error)) from error
    finally:
        os.close(writing)
    message = _read_all(reading)
    if message != READY:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        raise NamespaceError(message.decode(errors="replace") or "the process that holds them ended at once")
    return Namespaces(holder, has_user=has_user, drops_capabilities=drops_capabilities or has_user)


def _fork_holder() -> int:
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        syscalls.unshare(CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                syscalls.setns(own, CLONE_NEWPID)
    finally:
        os.close(own)
    return pid


def _unshare_processes() -> None:
    """Moves this process to a user namespace of its own, where its account is the only one, and its next
    child to a namespace of processes."""
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(CLONE_NEWUSER)
    # An account may map its group only if it gives up changing its groups.
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        path = f"/proc/self/{file}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            os.write(descriptor, text.encode())
            os.close(descriptor)
        except OSError as error:
            raise NamespaceError(f"{path}: {error.strerror}") from error
    syscalls.unshare(CLONE_NEWPID)


def _fork_through(prepare: Callable[[], None]) -> int:
    """Forks a process by way of another one, which calls `prepare` first and ends. Returns as `os.fork`: the
    process becomes a child of this one. Raises OSError, and NamespaceError.

    What lets a process join a user namespace cannot be undone, so this one must not do it."""
    syscalls.adopt_orphans()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    between = os.fork()
    if between == 0:
        message = ""
        try:
            prepare()
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                os.close(writing)
                return 0
            message = str(pid)
        except BaseException as error:
            message = reason(error)
        os.write(writing, message.encode(errors="replace")[:MAX_MESSAGE_BYTES])
        os._exit(0)
    os.close(writing)
    message = _read_all(reading).decode(errors="replace")
    os.waitpid(between, 0)
    if not message.isdecimal():
        raise NamespaceError(message or "a process that was to enter them ended at once")
    return int(message)


def _hold(arrange: Callable[[], None], writing: int) -> NoReturn:
    """Is process 1 of the new namespaces. Never returns."""
    try:
        # The places for mounts must be passable for the account of the run, but need not be listed.
        os.umask(0o066)
        os.chdir("/")
        syscalls.unshare(CLONE_NEWNS | CLONE_NEWIPC)
        arrange()
        os.write(writing, READY)
        os.close(writing)
        _reap()
    except BaseException as error:
        os.write(writing, reason(error).encode(errors="replace")[:MAX_MESSAGE_BYTES])
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


def reason(error: BaseException) -> str:
    """Returns what went wrong, as a part of a sentence."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or repr(error)


def _read_all(reading: int) -> bytes:
    pieces = []
    while piece := os.read(reading, MAX_MESSAGE_BYTES):
        pieces.append(piece)
    os.close(reading)
    return b"".join(pieces)
