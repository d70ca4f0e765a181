"""What output files are written into."""

from __future__ import annotations

import hashlib
import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Target(Protocol):
        """`threads`: how many files are written at a time."""

        threads: int

        def write(self, name: str, source: int) -> tuple[int, str]:
            """Writes what the descriptor `source` reads under this name. Returns size and SHA-256. Raises
            WriteFailed, ChangedMeanwhile and OSError; of such a file nothing remains."""


class WriteFailed(Exception):
    """Nothing more can be written there. The message is a sentence."""


class ChangedMeanwhile(Exception):
    """The file was changed while it was read."""


class ReadCounter:
    """How many bytes were read of all files, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.bytes = 0

    def add(self, size: int) -> None:
        with self._lock:
            self.bytes += size


class HashedFile:
    """A file that is read once, from its beginning: what was read is hashed."""

    def __init__(self, source: int, counter: ReadCounter) -> None:
        self._source = source
        self._counter = counter
        self._digest = hashlib.sha256()
        self._before = self._version()
        self.size = os.fstat(source).st_size

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
        self.check()

    def check(self) -> None:
        if self._version() != self._before:
            raise ChangedMeanwhile

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def _version(self) -> tuple[int, int, int]:
        facts = os.fstat(self._source)
        return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
