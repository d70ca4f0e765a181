"""Keeps the cache of data within its size: removes what was used least recently and no run uses."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trainhub_node.data import cached_lists
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.errors import DataError

# What stays free on the disk whatever the size of the cache is.
DISK_RESERVE_BYTES = 1024**3
GB = 1e9


@contextmanager
def reserve(cache: DataCache, attempt: str, needed: int, limit: int) -> Iterator[None]:
    """Makes room for `needed` bytes, and counts them as used meanwhile. `limit`: the size of the cache in
    bytes. Raises DataError with the numbers."""
    path = f"{cache.reserved}/{attempt}"
    with alone(cache):
        _make_room(cache, needed, limit)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        # The kernel releases it when this process ends, however it ends.
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, str(needed).encode())
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.close(file)


def _make_room(cache: DataCache, needed: int, limit: int) -> None:
    files = _files(cache)
    used = sum(size for _, size, _, _ in files)
    reserved = _reserved(cache)
    disk = os.statvfs(cache.folder)
    free = disk.f_bavail * disk.f_frsize - DISK_RESERVE_BYTES - reserved
    unused = sorted((file for file in files if not file[3]), key=lambda file: file[0])
    in_use = used - sum(size for _, size, _, _ in unused)
    count = 0
    while count < len(unused) and not (used + reserved + needed <= limit and needed <= free):
        size = unused[count][1]
        used, free, count = used - size, free + size, count + 1
    if used + reserved + needed > limit:
        remedy = "raise TRAINHUB_NODE_DATA_CACHE_BYTES"
        if in_use + reserved + needed + DISK_RESERVE_BYTES > disk.f_blocks * disk.f_frsize:
            remedy = "move TRAINHUB_NODE_CACHE to a larger disk"
        raise DataError(
            f"The data needs {needed / GB:,.2f} GB, and the cache of this node has room for "
            f"{limit / GB:,.2f} GB, of which other runs use {(in_use + reserved) / GB:,.2f} GB: choose "
            f"another node, or ask its operator to {remedy}."
        )
    if needed > free:
        raise DataError(
            f"The data needs {needed / GB:,.2f} GB, and the disk of this node's cache has "
            f"{max(free, 0) / GB:,.2f} GB to spare: choose another node, or ask its operator to make room."
        )
    if count:
        cached_lists.forget_until(cache, unused[count - 1][0])
    for _, _, paths, _ in unused[:count]:
        for path in paths:
            os.unlink(path)


def _files(cache: DataCache) -> list[tuple[float, int, list[str], bool]]:
    """Returns of each file of the cache when it was used last, its bytes, its paths, and whether a run uses
    it. A link that is made or removed, as for each run, changes the time."""
    places: dict[int, tuple[os.stat_result, list[str]]] = {}
    for top in (cache.names, cache.objects):
        with os.scandir(top) as folders:
            for folder in folders:
                with os.scandir(folder.path) as entries:
                    for entry in entries:
                        facts = entry.stat(follow_symlinks=False)
                        places.setdefault(facts.st_ino, (facts, []))[1].append(entry.path)
    return [
        (facts.st_ctime, facts.st_size, paths, facts.st_nlink > len(paths))
        for facts, paths in places.values()
    ]


def _reserved(cache: DataCache) -> int:
    """Returns the bytes that other downloads still need; forgets those of downloads that died."""
    total = 0
    for name in os.listdir(cache.reserved):
        path = f"{cache.reserved}/{name}"
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        except BlockingIOError:
            total += int(os.read(file, 32) or b"0")
        finally:
            os.close(file)
    return total


@contextmanager
def alone(cache: DataCache) -> Iterator[None]:
    """Of several processes one at a time."""
    file = os.open(f"{cache.folder}/space.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
