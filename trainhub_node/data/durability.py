"""What a crash of the machine may have done to the cache.

A download does not wait until its files are on the disk: for many small ones that would take longer than the
download. So a power failure may leave names of files whose content is missing. The cache remembers until when
everything was on the disk; after a restart of the machine, what was used since then is compared with its hash
before anything is taken from the cache. A file that has no hash yet (see contents.naming) is removed then."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress

from trainhub_node import proc, records
from trainhub_node.data import cached_lists
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.small_part import SmallFileLocks
from trainhub_node.durable_files import sync_file_system
from trainhub_node.untrusted import removal

log = logging.getLogger(__name__)
READ_BYTES = 1024 * 1024
DAY_S = 86400.0


def write_out(cache: DataCache) -> None:
    """Writes everything to the disk, and remembers that. Raises OSError."""
    if not os.path.isdir(cache.folder):
        return
    now = time.time()
    sync_file_system(cache.folder)
    if _last(cache)[0] == proc.boot_id():
        _remember(cache, now)


def check_after_restart(cache: DataCache) -> None:
    """Removes what the machine's last crash has damaged. Does nothing if the machine was not restarted since
    the last call. One process at a time may call it."""
    boot, written_at = _last(cache)
    if boot == proc.boot_id():
        return
    for path, sha256 in _used_since(cache.objects, written_at):
        if _sha256(path) != sha256.partition(cache.COPY)[0]:
            log.warning("%s was damaged by a crash of the machine, and is downloaded again", path)
            cached_lists.forget_until(cache, math.inf)
            os.unlink(path)
    contents = {os.stat(path).st_ino for path, _ in _used_since(cache.objects, 0.0)}
    for path, _ in _used_since(cache.names, written_at):
        if os.stat(path).st_ino not in contents:
            cached_lists.forget_until(cache, math.inf)
            os.unlink(path)
    boots, current = os.path.split(cache.parts)
    for name in set(os.listdir(boots)) - {current}:
        # Of unfinished files nobody knows what is on the disk.
        _remove_unlocked(cache, f"{boots}/{name}")
    _remember(cache, written_at)


def _remove_unlocked(cache: DataCache, folder: str) -> None:
    """Removes the parts of another session, but those that are locked: containers may see another id of the
    session, and use the same cache."""
    locks = SmallFileLocks(cache)
    try:
        for place, _, names in os.walk(folder):
            for name in names:
                part = name.partition(".")[0]
                if not _is_locked(f"{place}/{part}") and locks.acquire(part):
                    with suppress(FileNotFoundError):
                        os.unlink(f"{place}/{name}")
                    locks.release(part)
    finally:
        locks.close()
    if time.time() - os.stat(folder).st_mtime > DAY_S:
        removal.remove_tree(folder)


def _is_locked(part: str) -> bool:
    try:
        file = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _last(cache: DataCache) -> tuple[str, float]:
    """Returns in which session of the machine the cache was used, and when everything was on the disk."""
    record = records.read(_record(cache)) or {"boot": "", "at": 0.0}
    return record["boot"], record["at"]


def _remember(cache: DataCache, moment: float) -> None:
    records.write(_record(cache), {"boot": proc.boot_id(), "at": moment})


def _record(cache: DataCache) -> str:
    return f"{cache.folder}/written.json"


def _used_since(top: str, moment: float) -> Iterator[tuple[str, str]]:
    """Yields path and name of each file whose names have changed since."""
    with os.scandir(top) as folders:
        for folder in folders:
            with os.scandir(folder.path) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_ctime >= moment:
                        yield entry.path, entry.name


def _sha256(path: str) -> str:
    result = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(READ_BYTES):
            result.update(block)
    return result.hexdigest()
