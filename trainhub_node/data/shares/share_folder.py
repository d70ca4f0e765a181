"""The folder in which one share is mounted on this node: KEY/mount, and KEY/lock beside it.

Whoever uses the mount holds the lock together with others, as long as its process lives; whoever mounts or
unmounts holds it alone. The kernel releases it whatever becomes of the process. So no record of who uses
what can be wrong, and a mount that an agent or child has left is taken over by the next one."""

from __future__ import annotations

import fcntl
import os

from trainhub_node.supervisor.variables import DEFAULT_PATH, find_program

# The accounts of runs pass through, and see what the server lets them see.
PASSAGE = 0o711
UNMOUNT_TIMEOUT_S = 5.0


class ShareFolder:
    """`root`: the folder of all shares of the agent, without links; `key`: see NfsShare."""

    def __init__(self, root: str, key: str) -> None:
        self.path = f"{root}/{key}"
        self.mount = f"{self.path}/mount"
        self.lock = f"{self.path}/lock"

    def make(self) -> None:
        """Makes what is missing. Asks no file server."""
        for path in (os.path.dirname(self.path), self.path, self.mount):
            try:
                os.mkdir(path, PASSAGE)
            except FileExistsError:
                continue
            os.chmod(path, PASSAGE)

    def open_lock(self) -> int:
        """Returns a descriptor for `try_lock`."""
        return os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, *, alone: bool) -> bool:
    """Returns whether the lock is held now. What was held before may be lost if it is not."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptor: int) -> None:
    """Releases the lock and closes the descriptor. A process that is just being started has a copy of it,
    until it becomes another program: closing alone would leave the lock to that."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def unmount_command(path: str) -> list[str]:
    """Returns the arguments of umount. What it unmounts is gone from there at once; then the kernel tells the
    server, so umount may have to be ended after UNMOUNT_TIMEOUT_S."""
    program = find_program("umount", DEFAULT_PATH) or "umount"
    return [program, "--lazy", "--internal-only", "--no-canonicalize", path]
