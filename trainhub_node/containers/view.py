"""The file system of a container as the ranks see it.

The engine has mounted the image and the run's folders. Ranks get a copy of these mounts, in which all but the
run's own folders is read-only, with /proc, /dev/shm and /dev/pts of their own. So the disk of the engine
cannot be filled, and nothing that the engine or another process does in the container concerns the ranks."""

from __future__ import annotations

import os

from trainhub_node.isolation import mounts, syscalls
from trainhub_node.isolation.syscalls import (
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    MS_SLAVE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NULL = "/dev/null"
# What engines cover, because root could change the machine or read its memory there.
COVERED = (
    "acpi",
    "asound",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
)
READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
# From <sys/stat.h>: the bits of a file's type, and those of a plain file.
IFMT, IFREG = 0o170000, 0o100000
MAX_ACCOUNT_FILE_BYTES = 1024 * 1024


class ContainerView:
    """`writable`: the paths into which the ranks may write. `account_lines`: a file of accounts -> the line
    that it gets. `shm_bytes`: the size of /dev/shm, 0 is half of the machine's memory. `inputs`: a path ->
    the device and inode of what the engine must have mounted there."""

    def __init__(
        self,
        writable: Iterable[str],
        account_lines: Mapping[str, str],
        shm_bytes: int = 0,
        inputs: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.writable = list(writable)
        self.inputs = dict(inputs or {})
        self.account_lines = dict(account_lines)
        self.shm_bytes = shm_bytes

    def arrange(self, namespace: int) -> None:
        """Moves this process to a copy of the container's mounts and arranges that. `namespace`: a
        descriptor of the container's. Raises OSError."""
        syscalls.setns(namespace, CLONE_NEWNS)
        syscalls.unshare(CLONE_NEWNS)
        os.chdir("/")
        for path, identity in self.inputs.items():
            mounts.check_identity(path, os.stat(path), *identity)
        syscalls.mount(None, "/", None, MS_REC | MS_SLAVE)
        for path, line in self.account_lines.items():
            _append_line(path, line)
        mounts.make_all_read_only()
        for path in self.writable:
            syscalls.mount(None, path, None, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV)
        mounts.mount_terminals_and_memory(self.shm_bytes)
        mounts.hide_control_groups()
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        for name in COVERED:
            _cover(f"/proc/{name}")
        for name in READ_ONLY:
            _make_read_only(f"/proc/{name}")


def _append_line(path: str, line: str) -> None:
    """Adds an account to a file of the image: programs such as ssh refuse a number without a name. The image
    may be anybody's: a link or something that is no file is left alone."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError:
        return
    try:
        facts = os.fstat(file)
        size = facts.st_size
        if facts.st_mode & IFMT == IFREG and size <= MAX_ACCOUNT_FILE_BYTES:
            separator = "\n" if size and os.pread(file, 1, size - 1) != b"\n" else ""
            os.pwrite(file, f"{separator}{line}\n".encode(), size)
    finally:
        os.close(file)


def _cover(path: str) -> None:
    if os.path.isdir(path):
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY
        syscalls.mount("tmpfs", path, "tmpfs", flags, "size=4k")
    elif os.path.exists(path):
        syscalls.mount(NULL, path, None, MS_BIND)


def _make_read_only(path: str) -> None:
    if os.path.exists(path):
        syscalls.mount(path, path, None, MS_BIND | MS_REC)
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY
        syscalls.mount(None, path, None, MS_REMOUNT | MS_BIND | flags)
