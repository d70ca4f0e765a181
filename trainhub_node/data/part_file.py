"""A file of a store while it is being downloaded, in pieces that arrive in any order."""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.remote_file import RemoteFile

# Nodes exchange pieces of this size, too.
PIECE_BYTES = 8 * 1024 * 1024
READ_BYTES = 1024 * 1024
NUMBER = struct.Struct("<I")
READ_ONLY = 0o444


class PartFile:
    """The unfinished file, which this process alone writes. After the death of a process the next one goes on
    with the pieces that are recorded: each was written before its number."""

    def __init__(self, cache: DataCache, file: RemoteFile, descriptor: int) -> None:
        self.file = file
        self.path = cache.part(file.identity)
        self.descriptor = descriptor
        self._record_path = cache.pieces(file.identity)
        self._record: int | None = None
        self._lock = threading.Lock()
        self._count = max(1, -(-file.size // PIECE_BYTES))
        self._done = recorded_pieces(self._record_path, self._count) if self._count > 1 else set()

    @classmethod
    def open(cls, cache: DataCache, file: RemoteFile, *, waits: bool) -> PartFile | None:
        """Returns the part, None while another process downloads it, unless this call `waits` for that."""
        while True:
            descriptor = os.open(cache.part(file.identity), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(descriptor)
                return None
            if _inode(cache.part(file.identity)) == os.fstat(descriptor).st_ino:
                return cls(cache, file, descriptor)
            # Whoever had it has completed it: this is the file that runs read by now.
            os.close(descriptor)

    @property
    def is_whole(self) -> bool:
        """Whether it is downloaded by one request."""
        return self._count == 1

    @property
    def bytes_here(self) -> int:
        """The bytes that have arrived earlier."""
        return sum(end - start for start, end in map(self._bounds, self._done))

    def has_piece(self, number: int) -> bool:
        return number in self._done

    @property
    def has_all_pieces(self) -> bool:
        return self._count > 1 and len(self._done) == self._count

    def missing(self) -> Iterator[tuple[int, int, int]]:
        """Yields number, first byte and end of each piece that is missing."""
        for number in range(self._count):
            if number not in self._done:
                yield (number, *self._bounds(number))

    def write(self, data: memoryview, offset: int) -> None:
        while data:
            written = os.pwrite(self.descriptor, data, offset)
            data, offset = data[written:], offset + written

    def finish_piece(self, number: int) -> bool:
        """Records that a piece is there. Returns whether it was the last one."""
        with self._lock:
            self._done.add(number)
            if self._count > 1:
                if self._record is None:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                    self._record = os.open(self._record_path, flags, 0o600)
                os.write(self._record, NUMBER.pack(number))
            return len(self._done) == self._count

    def write_whole(self, content: memoryview) -> None:
        self.write(content, 0)

    def seal(self) -> None:
        """Makes the whole file what runs see."""
        if os.fstat(self.descriptor).st_size != self.file.size:
            # An earlier download has written more.
            os.ftruncate(self.descriptor, self.file.size)
        os.utime(self.descriptor, (self.file.modified_at, self.file.modified_at))
        os.fchmod(self.descriptor, READ_ONLY)

    def sha256(self) -> str:
        """Returns the hash of the whole file, all of which is here."""
        return self._hash(0, self.file.size).hex()

    def hash_piece(self, number: int) -> bytes:
        """Returns the SHA-256 of a piece that is here."""
        return self._hash(*self._bounds(number))

    def _hash(self, offset: int, end: int) -> bytes:
        result = hashlib.sha256()
        while block := os.pread(self.descriptor, min(READ_BYTES, end - offset), offset):
            result.update(block)
            offset += len(block)
        return result.digest()

    def move(self, path: str) -> None:
        """Gives the file its place once it is sealed."""
        os.rename(self.path, path)
        self._end()

    def discard(self) -> None:
        """Removes the part, which is of no use."""
        os.unlink(self.path)
        self._end()

    def set_aside(self) -> None:
        """Closes the part and releases its lock. What has arrived stays, and is found by the next `open`."""
        if self._record is not None:
            os.close(self._record)
        os.close(self.descriptor)

    def _end(self) -> None:
        """Releases the lock: others that wait for it see that the part is gone."""
        if self._count > 1:
            with suppress(FileNotFoundError):
                os.unlink(self._record_path)
        self.set_aside()

    def _bounds(self, number: int) -> tuple[int, int]:
        start = number * PIECE_BYTES
        return start, min(start + PIECE_BYTES, self.file.size)


def recorded_pieces(path: str, count: int) -> set[int]:
    """Returns the numbers of the pieces that are there, from the record at `path` of a file that has
    `count`."""
    try:
        with open(path, "rb") as record:
            content = record.read()
    except FileNotFoundError:
        return set()
    # A number that was cut off in the middle belongs to a piece that is downloaded again.
    whole = content[: len(content) // NUMBER.size * NUMBER.size]
    return {number for (number,) in NUMBER.iter_unpack(whole) if number < count}


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0
