"""Measures how much of the disk the files of a run take. The run may change its tree meanwhile, and may try
to hide files in it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from trainhub_node import proc
from trainhub_node.untrusted import beneath

BLOCK_BYTES = 512  # the unit of st_blocks, on every file system
# A tree with more entries is counted so far only: neither time nor memory of the agent is the run's.
MAX_ENTRIES = 5_000_000
MAX_PENDING_BYTES = 64 * 2**20
DELETED = b" (deleted)"


class Unmeasurable(Exception):
    """A part of the tree lies so deep that it has no path; no program needs that, except to hide
    something."""


def tree_bytes(path: str) -> int:
    """Returns the bytes that the folder and all in it take on its own file system; a file with several names
    counts once. Raises Unmeasurable, and OSError if the folder itself is gone."""
    root = beneath.open_root(path)
    try:
        return _Measurement(root).total()
    finally:
        os.close(root)


class _Measurement:
    def __init__(self, root: int) -> None:
        self._root = root
        self._device = os.fstat(root).st_dev
        self._linked: set[int] = set()
        self._pending = ["."]
        self._pending_bytes = 1
        self._entries = 0
        self._blocks = 0

    def total(self) -> int:
        while self._pending and self._entries < MAX_ENTRIES:
            folder = self._pending.pop()
            self._pending_bytes -= len(folder)
            self._measure(folder)
        return self._blocks * BLOCK_BYTES

    def _measure(self, folder: str) -> None:
        try:
            fd = beneath.open_folder(self._root, folder)
        except OSError as error:
            if len(os.fsencode(folder)) >= os.pathconf("/", "PC_PATH_MAX"):
                raise Unmeasurable(folder[:100]) from error
            return  # removed or replaced meanwhile
        try:
            # One after the other, never a list: a folder may have millions of entries.
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._count(folder, entry)
        finally:
            os.close(fd)

    def _count(self, folder: str, entry: os.DirEntry[str]) -> None:
        self._entries += 1
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # removed meanwhile
        if status.st_dev != self._device:
            return
        if entry.is_dir(follow_symlinks=False):
            if self._pending_bytes < MAX_PENDING_BYTES:
                self._pending.append(f"{folder}/{entry.name}")
                self._pending_bytes += len(self._pending[-1])
        elif status.st_nlink > 1:
            if status.st_ino in self._linked:
                return
            self._linked.add(status.st_ino)
        self._blocks += status.st_blocks


def deleted_bytes(pids: Iterable[int], device: int) -> int:
    """Returns the bytes of files of the file system `device` without a name that these processes have open or
    in memory: their space is free again only when the last of the processes lets go of them."""
    blocks: dict[int, int] = {}
    for pid in pids:
        for path in _deleted_files(pid):
            try:
                status = os.stat(path)
            except OSError:
                continue  # closed meanwhile
            if status.st_dev == device and status.st_nlink == 0:
                blocks[status.st_ino] = status.st_blocks
    return sum(blocks.values()) * BLOCK_BYTES


def _deleted_files(pid: int) -> Iterable[bytes]:
    """Yields paths in /proc that lead to deleted files. Of no others: a look at one on a file server that
    does not answer would take for ever."""
    folder = b"/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)
    except OSError:
        return  # it has ended
    for name in names:
        path = folder + b"/" + name
        try:
            if os.readlink(path).endswith(DELETED):
                yield path
        except OSError:
            continue
    for line in (proc.read(f"/proc/{pid}/maps") or b"").splitlines():
        if line.endswith(DELETED):
            yield b"/proc/%d/map_files/%s" % (pid, _range(line.split(maxsplit=1)[0]))


def _range(addresses: bytes) -> bytes:
    """Returns the name in map_files of a range, which has no leading zeros."""
    return b"-".join(part.lstrip(b"0") or b"0" for part in addresses.split(b"-"))
