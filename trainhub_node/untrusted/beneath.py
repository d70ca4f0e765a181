"""Opens files below a folder that another account controls, so that no name, link or race leads out of it.

A file is first opened with O_PATH, which touches nothing but its entry, and opened for reading only after
it has proved to be a regular file: opening a pipe or a device would have effects."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

SYS_OPENAT2 = 437
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08
UNAVAILABLE = (
    errno.ENOSYS,
    errno.EPERM,
)  # a kernel before 5.6; a container that forbids calls that it does not know
ESCAPES = (errno.EXDEV, errno.ELOOP)
MAX_TRIES = 64
MAX_LINKS = 40
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class OutsideFolder(OSError):
    """The name leads to something that is not a regular file below the folder."""


def open_root(path: str) -> int:
    """Returns an O_PATH descriptor of a folder whose own path the agent controls. Raises OSError."""
    return os.open(path, FOLDER | os.O_NOFOLLOW)


def open_regular(root: int, path: str, *, follow_links: bool = False) -> int:
    """Returns a descriptor for reading the regular file at `path` below `root`. Raises OutsideFolder, and
    OSError.

    `follow_links`: links are followed as long as they stay below `root`."""
    entry = open_entry(root, path, follow_links=follow_links)
    try:
        if not stat.S_ISREG(os.fstat(entry).st_mode):
            raise OutsideFolder(f"{path} is not a regular file")
        return reopen(entry, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    finally:
        os.close(entry)


def open_folder(root: int, path: str) -> int:
    """Returns a descriptor for listing the folder at `path` below `root`, without following links. Raises
    OSError."""
    entry = open_entry(root, path, follow_links=False)
    try:
        if not stat.S_ISDIR(os.fstat(entry).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return reopen(entry, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(entry)


def reopen(entry: int, flags: int) -> int:
    """Opens the file of an O_PATH descriptor again with other `flags`; no name is looked up."""
    return os.open(f"/proc/self/fd/{entry}", flags | os.O_CLOEXEC)


def open_entry(root: int, path: str, *, follow_links: bool) -> int:
    """Returns an O_PATH descriptor of `path` below `root`; a link itself if links are not followed. Raises
    OSError."""
    try:
        return open_by_kernel(root, path, follow_links=follow_links)
    except OSError as error:
        if error.errno not in UNAVAILABLE:
            raise
    return open_by_steps(root, path, follow_links=follow_links)


def open_by_kernel(root: int, path: str, *, follow_links: bool) -> int:
    """Implements `open_entry` with openat2, which looks up the whole path beneath `root`. Raises OSError."""
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (0 if follow_links else RESOLVE_NO_SYMLINKS)
    # `struct open_how` of <linux/openat2.h>: flags, mode and resolve, 64 bits each.
    open_how = struct.pack("QQQ", flags, 0, resolve)
    for _ in range(MAX_TRIES):
        fd = _libc.syscall(SYS_OPENAT2, root, os.fsencode(path), open_how, ctypes.c_size_t(len(open_how)))
        if fd >= 0:
            return int(fd)
        # EAGAIN: an entry was renamed meanwhile. A run could repeat that endlessly, hence the limit.
        if ctypes.get_errno() != errno.EAGAIN:
            break
    number = ctypes.get_errno()
    if number in ESCAPES:
        raise OutsideFolder(number, os.strerror(number), path)
    raise OSError(number, os.strerror(number), path)


def open_by_steps(root: int, path: str, *, follow_links: bool) -> int:
    """Implements `open_entry` one component at a time, for kernels without openat2. Raises OSError."""
    pending = _components(path)
    descriptors = [os.dup(root)]
    links = 0
    try:
        while pending:
            name = pending.pop()
            # `..` goes back to the descriptor by which the folder was entered: by then the run may have moved
            # the folder elsewhere, and the kernel's `..` would lead out.
            if name == "..":
                if len(descriptors) == 1:
                    raise OutsideFolder(errno.EXDEV, os.strerror(errno.EXDEV), path)
                os.close(descriptors.pop())
                continue
            entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptors[-1])
            descriptors.append(entry)
            mode = os.fstat(entry).st_mode
            if stat.S_ISLNK(mode) and (follow_links or pending):
                links += 1
                if not follow_links or links > MAX_LINKS:
                    raise OutsideFolder(errno.ELOOP, os.strerror(errno.ELOOP), path)
                # Read by its descriptor and not by name, so that it is the link that was just checked.
                pending += _components(os.readlink("", dir_fd=entry))
                os.close(descriptors.pop())
            elif pending and not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return descriptors.pop()
    finally:
        for fd in descriptors:
            os.close(fd)


def _components(path: str) -> list[str]:
    """Returns the components of a relative path, the first one last. Raises OutsideFolder for an absolute
    path."""
    if path.startswith("/"):
        raise OutsideFolder(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
