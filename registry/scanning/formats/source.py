"""The bytes of a file or of a member of an archive. A source can be opened several times, and all sources of
a file share limits."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, cast

# Archives in archives that are looked into.
MAX_DEPTH = 4
MAX_MEMBERS = 20_000
# Of all archives and compressed streams in one file together; MODEL_SCAN_SECONDS mostly ends the scan
# earlier.
MAX_UNPACKED_BYTES = 16 * 2**30
HEAD_BYTES = 512


class Unreadable(Exception):
    """A file cannot be judged. The message is shown on pages."""


@dataclass
class ScanLimits:
    """What may still be unpacked of one file of a model, including all archives in it."""

    remaining_bytes: int = MAX_UNPACKED_BYTES
    remaining_members: int = MAX_MEMBERS

    def spend(self, count: int) -> None:
        self.remaining_bytes -= count
        if self.remaining_bytes < 0:
            raise Unreadable(f"It unpacks to more than {MAX_UNPACKED_BYTES // 2**30} GiB.")

    def enter(self) -> None:
        self.remaining_members -= 1
        if self.remaining_members < 0:
            raise Unreadable(f"It holds more than {MAX_MEMBERS} files.")


@dataclass(frozen=True)
class Source:
    """A file called `name`. `open` returns a new stream from its first byte; `size` is None if it is only
    known after reading."""

    name: str
    open: Callable[[], IO[bytes]]
    size: int | None = None
    depth: int = 0
    limits: ScanLimits = field(default_factory=ScanLimits)

    @property
    def base(self) -> str:
        return PurePosixPath(self.name).name.lower()

    @property
    def extension(self) -> str:
        return PurePosixPath(self.base).suffix

    def head(self, size: int = HEAD_BYTES) -> bytes:
        with self.open() as file:
            return read_fully(file, size)

    def whole(self, limit: int) -> bytes:
        """Read all of it; raises Unreadable where it is longer than `limit`."""
        data = self.head(limit + 1)
        if len(data) > limit:
            raise Unreadable(
                f"It is longer than {limit // 2**20} MiB, which the scanner does not read of this format."
            )
        return data

    def inner(self, name: str, opener: Callable[[], IO[bytes]], size: int | None = None) -> Source:
        """Return the member `name` of this archive, or what this compressed stream holds."""
        if self.depth >= MAX_DEPTH:
            raise Unreadable(f"It holds archives in archives, more than {MAX_DEPTH} deep.")
        self.limits.enter()
        # Archives in archives share the limits of the outermost file.
        return Source(name, lambda: metered(opener(), self.limits), size, self.depth + 1, self.limits)


class Metered(io.RawIOBase):
    """A stream that subtracts the bytes read from the limits."""

    def __init__(self, source: IO[bytes], limits: ScanLimits) -> None:
        self._source = source
        self._limits = limits

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._source.seekable()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._source.read(len(buffer))
        self._limits.spend(len(data))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._source.seek(offset, whence)

    def tell(self) -> int:
        return self._source.tell()

    def close(self) -> None:
        self._source.close()
        super().close()


def metered(source: IO[bytes], limits: ScanLimits) -> IO[bytes]:
    return cast("IO[bytes]", io.BufferedReader(Metered(source, limits)))


def read_fully(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or fewer where the file ends before."""
    parts = []
    while size and (data := file.read(min(size, 1024 * 1024))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def length_of(source: Source) -> int:
    """Returns the number of bytes; it reads all of them if the size is not known."""
    if source.size is not None:
        return source.size
    count = 0
    with source.open() as file:
        while data := file.read(1024 * 1024):
            count += len(data)
    return count
