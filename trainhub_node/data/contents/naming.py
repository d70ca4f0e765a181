"""Gives downloaded files the names of their contents, and keeps equal ones once.

A download hashes only what must have a certain content: hashing takes longer than all else, and the run
waits. So a process of its own, with the lowest priority, does it once the ranks have started. It may be
killed at any time: a file either has its name or gets it the next time, and is complete all along."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from trainhub_node.data import durability, space
from trainhub_node.data.data_cache import DataCache
from trainhub_node.environments.builder_account import end_with_parent

READ_BYTES = 1024 * 1024
# Rests so many times as long as a read took: not all disks know the priority of a request.
REST = 2.0
# From <linux/ioprio.h>, and the number of the call by machine.
IOPRIO_WHO_PROCESS = 1
IOPRIO_IDLE = 3 << 13
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}


def run(folder: str) -> NoReturn:
    """Names all contents of the cache in `folder`, unless another process does so."""
    end_with_parent()
    _yield_to_others()
    sys.exit(0 if name_contents(DataCache(folder, "")) else 1)


def name_contents(cache: DataCache) -> bool:
    """Returns whether no file refused it; what is wrong stands in standard error. Raises OSError."""
    lock = os.open(f"{cache.folder}/contents.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return _name_all(cache)
    finally:
        os.close(lock)


def _name_all(cache: DataCache) -> bool:
    with suppress(FileNotFoundError):
        os.unlink(_unfinished(cache))
    for copy, sha256, identity in _copies(cache):
        with space.alone(cache):
            _merge(cache, copy, sha256, identity)
    named = failed = 0
    for identity in _nameless(cache):
        try:
            _name(cache, identity)
            named += 1
        except FileNotFoundError:
            continue  # Room was made.
        except OSError as error:
            # The others are no worse for it.
            sys.stderr.write(f"{error}\n")
            failed += 1
    if named:
        # A new link counts as use: after a crash of the machine these files would be read again.
        durability.write_out(cache)
    return not failed


def _nameless(cache: DataCache) -> Iterator[str]:
    inodes = {inode for _, _, inode in _entries(cache.objects)}
    for _, identity, inode in _entries(cache.names):
        if inode not in inodes:
            yield identity


def _copies(cache: DataCache) -> Iterator[tuple[str, str, str]]:
    """Yields the path of each copy of a content, its hash, and of which file it is."""
    for path, name, _ in _entries(cache.objects):
        sha256, _, identity = name.partition(DataCache.COPY)
        if identity:
            yield path, sha256, identity


def _entries(top: str) -> Iterator[tuple[str, str, int]]:
    """Yields path, name and inode of each file below the folders in `top`."""
    with os.scandir(top) as folders:
        for folder in folders:
            # A list: names are added meanwhile.
            for entry in list(os.scandir(folder.path)):
                yield entry.path, entry.name, entry.inode()


def _name(cache: DataCache, identity: str) -> None:
    """Raises FileNotFoundError if the file is gone."""
    path = cache.name(identity)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sha256 = _hash(descriptor)
        with space.alone(cache):
            if not sha256 or not os.path.samestat(os.stat(path), os.fstat(descriptor)):
                return
            content = cache.content(sha256)
            try:
                os.link(path, content)
            except FileExistsError:
                if not os.path.samefile(path, content):
                    os.link(path, cache.copy(sha256, identity))
                    _merge(cache, cache.copy(sha256, identity), sha256, identity)
    finally:
        os.close(descriptor)


def _merge(cache: DataCache, copy: str, sha256: str, identity: str) -> None:
    """Puts the content in place of its copy, unless a run uses that. The caller is alone."""
    content, name, unfinished = cache.content(sha256), cache.name(identity), _unfinished(cache)
    links = os.stat(copy).st_nlink
    if links == 1:
        # A process was killed below.
        os.unlink(copy)
    elif not os.path.exists(content):
        os.rename(copy, content)
    elif links == 2 and os.path.samefile(copy, name):
        try:
            os.link(content, unfinished)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            return
        os.rename(unfinished, name)
        os.unlink(copy)


def _unfinished(cache: DataCache) -> str:
    return f"{cache.folder}/contents.unfinished"


def _hash(descriptor: int) -> str:
    """Returns the SHA-256 of a file, "" if it was removed meanwhile: it fills the disk while it is open."""
    result = hashlib.sha256()
    while os.fstat(descriptor).st_nlink:
        began_at = time.monotonic()
        block = os.read(descriptor, READ_BYTES)
        if not block:
            return result.hexdigest()
        rest_s = REST * (time.monotonic() - began_at)
        result.update(block)
        time.sleep(rest_s)
    return ""


def _yield_to_others() -> None:
    """Gives this process the lowest priority."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    call = IOPRIO_SET.get(os.uname().machine)
    if call is not None:
        # Where this is refused, the rests above are what is left.
        ctypes.CDLL(None).syscall(call, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE)
