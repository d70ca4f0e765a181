"""Removes trees that another account controls, by descriptors alone: no link is followed, and depth is
unlimited.

Imports little, because a run waits for this before it starts."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP)
BATCH = 4096


def remove_tree(path: str) -> None:
    """Removes the file or tree at `path`, if there is one. The folder that holds it must be the agent's
    own. Raises OSError."""
    parent, _, name = path.rstrip("/").rpartition("/")
    fd = os.open(parent or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _remove(name, fd)
    except FileNotFoundError:
        return
    finally:
        os.close(fd)


def _remove(name: str, parent: int) -> None:
    try:
        top = _take_over(name, parent)
    except OSError as error:
        if error.errno not in NOT_A_FOLDER:
            raise
        os.unlink(name, dir_fd=parent)
        return
    try:
        for entry in _entries(top):
            if entry.is_dir(follow_symlinks=False):
                _remove_folder(entry.name, top)
            else:
                os.unlink(entry.name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_folder(name: str, top: int) -> None:
    """Removes a folder in `top`. Its subfolders are first moved into `top`, so that depth costs no
    descriptors."""
    folder = _take_over(name, top)
    try:
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                os.close(_take_over(entry.name, folder))
                # A name that the run cannot guess and use first.
                os.rename(entry.name, f".removed.{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _take_over(name: str, parent: int) -> int:
    """Gives the folder to the agent's account, closes it to other accounts, and returns a descriptor for
    listing it.

    Otherwise another process of the account could fill the folder as fast as it is emptied."""
    entry = os.open(name, FOLDER, dir_fd=parent)
    try:
        # fchown and fchmod refuse O_PATH descriptors; this path leads to the same entry without looking up a
        # name.
        path = f"/proc/self/fd/{entry}"
        if os.fstat(entry).st_uid != os.geteuid():
            os.chown(path, os.geteuid(), os.getegid())
        os.chmod(path, 0o700)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(entry)


def _entries(folder: int) -> Iterator[os.DirEntry[str]]:
    """Yields entries until the folder is empty; a batch is listed before any of it is removed."""
    while True:
        with os.scandir(folder) as entries:
            batch = [entry for entry, _ in zip(entries, range(BATCH), strict=False)]
        if not batch:
            return
        yield from batch
