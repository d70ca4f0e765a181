"""What is common to folders of datastores into which an agent writes: objects of a store, or files of a
folder."""

from __future__ import annotations

import hashlib
import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Target(Protocol):
        """One folder in a datastore. `threads`: how many files are written or read at a time; `counter`: of
        what was read. All methods raise StoreFailed once nothing more can be done there, and OSError of this
        node's disk."""

        threads: int
        counter: ByteCounter

        def write(self, name: str, source: int) -> tuple[int, str]:
            """Writes what the descriptor `source` reads under this name. Returns size and SHA-256. Raises
            ChangedMeanwhile. A folder then has no such file; in a store, a large object may already be
            there."""

        def read(self, name: str, size: int, part: HashedPart) -> None:
            """Adds to `part` what it lacks of the file of this name, which has `size` bytes."""

        def remove(self, name: str, keep: frozenset[str]) -> None:
            """Removes the folder of this name with all that is in it but the files `keep`, if it is there."""

        def remove_file(self, name: str) -> None:
            """Removes the file of this name, if it is there."""


READ_BYTES = 1024 * 1024


class StoreFailed(Exception):
    """The store or folder cannot be used. The message is a sentence."""


class ChangedMeanwhile(Exception):
    """The file was changed while it was read."""


class ByteCounter:
    """How many bytes of all files were read, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.bytes = 0

    def add(self, size: int) -> None:
        with self._lock:
            self.bytes += size


class HashedPart:
    """A file that arrives, in one piece or in several runs of this process: hashed as it is written.

    `size`: of what is there."""

    def __init__(self, path: str, counter: ByteCounter) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._counter = counter
        self._digest = hashlib.sha256()
        self.size = 0
        while piece := os.read(self._descriptor, READ_BYTES):
            self._digest.update(piece)
            self.size += len(piece)

    def add(self, block: memoryview) -> None:
        self._digest.update(block)
        self._counter.add(len(block))
        self.size += len(block)
        while block:
            block = block[os.write(self._descriptor, block) :]

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def close(self) -> None:
        os.close(self._descriptor)


class HashedFile:
    """A file that is read once, from its beginning: what was read is hashed."""

    def __init__(self, source: int, counter: ByteCounter) -> None:
        self._source = source
        self._counter = counter
        self._digest = hashlib.sha256()
        self._before = os.fstat(source)
        self.size = self._before.st_size

    def pieces(self, length: int) -> Iterator[bytes]:
        """Yields pieces of `length` bytes, the last one shorter. Raises ChangedMeanwhile if the file has
        become another one at the end."""
        offset = 0
        # A file that grows all the time has no end.
        while offset < self.size:
            data = os.pread(self._source, min(length, self.size - offset), offset)
            if not data:
                break
            offset += len(data)
            self._digest.update(data)
            self._counter.add(len(data))
            yield data
        # What the ranks read next must not be pushed out of the memory by what nobody reads again.
        os.posix_fadvise(self._source, 0, 0, os.POSIX_FADV_DONTNEED)
        self.check()

    def check(self) -> None:
        before, after = self._before, os.fstat(self._source)
        is_same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        # A file that has lost its name, to the next one of a script that saves often, is as it was. Losing
        # the name has set the time of its last change of status.
        if not is_same or (after.st_nlink and before.st_ctime_ns != after.st_ctime_ns):
            raise ChangedMeanwhile

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
