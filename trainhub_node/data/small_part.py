"""A file of a store that is kept in memory until it is whole."""

from __future__ import annotations

import fcntl
import os
import threading
import time

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.part_file import READ_ONLY
from trainhub_node.data.remote_file import RemoteFile

RETRY_S = 0.1
# So many hexadecimal digits of an identity are the offset of a lock.
DIGITS = 15


class SmallFileLocks:
    """Which small files this process downloads: one byte of a common file is locked for each, which takes a
    fraction of what a lock file of its own would. A process may have one object of a cache at a time: the
    kernel releases all locks of a process when it closes the file once."""

    def __init__(self, cache: DataCache) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(f"{cache.folder}/files.lock", flags, 0o600)
        # The kernel does not tell the threads of a process apart.
        self._offsets: set[int] = set()
        self._lock = threading.Lock()

    def acquire(self, identity: str) -> bool:
        """Returns whether the file is this caller's now."""
        offset = int(identity[:DIGITS], 16)
        with self._lock:
            if offset in self._offsets:
                return False
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except BlockingIOError:
                return False
            self._offsets.add(offset)
        return True

    def release(self, identity: str) -> None:
        offset = int(identity[:DIGITS], 16)
        with self._lock:
            self._offsets.remove(offset)
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, offset)

    def close(self) -> None:
        os.close(self._descriptor)


class SmallPart:
    """The file, which this process alone downloads. Nothing of it is on the disk before `seal`."""

    def __init__(self, cache: DataCache, file: RemoteFile, locks: SmallFileLocks) -> None:
        self.file = file
        self.path = cache.part(file.identity)
        self._locks = locks
        self._content = memoryview(b"")
        self._is_on_disk = False

    @classmethod
    def open(
        cls, cache: DataCache, file: RemoteFile, locks: SmallFileLocks, *, waits: bool
    ) -> SmallPart | None:
        """As PartFile.open. Other processes may hold what this call `waits` for, not other threads."""
        while not locks.acquire(file.identity):
            if not waits:
                return None
            # Not in the kernel, which takes two processes that wait for each other's files for a deadlock
            # although other threads of them work.
            time.sleep(RETRY_S)
        return cls(cache, file, locks)

    def write_whole(self, content: memoryview) -> None:
        self._content = content

    def seal(self) -> None:
        """As PartFile.seal."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags, READ_ONLY)
        except FileExistsError:
            # Of a process that was killed.
            os.unlink(self.path)
            descriptor = os.open(self.path, flags, READ_ONLY)
        self._is_on_disk = True
        content = self._content
        try:
            while content:
                content = content[os.write(descriptor, content) :]
            os.utime(descriptor, (self.file.modified_at, self.file.modified_at))
        finally:
            os.close(descriptor)

    def move(self, path: str) -> None:
        """As PartFile.move."""
        os.rename(self.path, path)
        self._locks.release(self.file.identity)

    def discard(self) -> None:
        """As PartFile.discard."""
        if self._is_on_disk:
            os.unlink(self.path)
        self._locks.release(self.file.identity)
