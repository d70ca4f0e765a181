"""Which lists of files the cache has all files of, for the hub, which prefers nodes that have the data of a
run.

A file named by the list's key says so. Its time is that at which the last download of the list began: all
files of the list were used later. Since what was used least recently makes room first, a list is whole
while nothing that was used later than this has been removed."""

from __future__ import annotations

import os
from contextlib import suppress

from trainhub_launch.machine import MAX_DATA_LISTS
from trainhub_node.data.data_cache import DataCache

# The times of files come from a coarser clock.
TICK_S = 0.05


def note_list(cache: DataCache, key: str, began_at: float) -> None:
    """To be called when a run sees all files of the list, which stay in the cache while it does. `began_at`:
    in seconds since 1970. Raises OSError."""
    path = f"{cache.lists}/{key}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.utime(path, (began_at - TICK_S, began_at - TICK_S))
    for _, name in _by_time(cache)[MAX_DATA_LISTS:]:
        _remove(cache, name)


def forget_until(cache: DataCache, moment: float) -> None:
    """To be called before files are removed that were used at `moment` for the last time, or earlier."""
    for used_at, name in _by_time(cache):
        if used_at <= moment:
            _remove(cache, name)


def cached_keys(cache: DataCache) -> tuple[str, ...]:
    """Returns the keys, the latest first."""
    return tuple(name for _, name in _by_time(cache))


def _by_time(cache: DataCache) -> list[tuple[float, str]]:
    entries = []
    with suppress(FileNotFoundError), os.scandir(cache.lists) as files:
        for entry in files:
            # Another process may remove it at the same time.
            with suppress(FileNotFoundError):
                entries.append((entry.stat().st_mtime, entry.name))
    return sorted(entries, reverse=True)


def _remove(cache: DataCache, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(f"{cache.lists}/{name}")
