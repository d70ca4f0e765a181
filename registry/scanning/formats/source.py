"""The bytes of a file or of a member of an archive, which a reader may open more than once, within common
limits."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, cast

MAX_DEPTH = 4
"""Archives in archives that are looked into."""
MAX_MEMBERS = 20_000
MAX_UNPACKED_BYTES = 16 * 2**30
"""Of all archives and compressed streams in one file together; MODEL_SCAN_SECONDS mostly ends the scan
earlier."""
HEAD_BYTES = 512


class Unreadable(Exception):
    """A file cannot be judged. The message is a sentence for the page."""


@dataclass
class Limits:
    """What may still be read of one file of a model, whatever archives are in it."""

    bytes_left: int = MAX_UNPACKED_BYTES
    members_left: int = MAX_MEMBERS

    def spend(self, count: int) -> None:
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise Unreadable(f"It unpacks to more than {MAX_UNPACKED_BYTES // 2**30} GiB.")

    def enter(self) -> None:
        self.members_left -= 1
        if self.members_left < 0:
            raise Unreadable(f"It holds more than {MAX_MEMBERS} files.")


@dataclass(frozen=True)
class Source:
    """A file called `name`. `open` starts at its first byte each time; `size` is None where only reading can
    tell it."""

    name: str
    open: Callable[[], IO[bytes]]
    size: int | None = None
    depth: int = 0
    limits: Limits = field(default_factory=Limits)

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
        return Source(name, lambda: metered(opener(), self.limits), size, self.depth + 1, self.limits)


class Metered(io.RawIOBase):
    """A stream that takes what is read from it out of the limits."""

    def __init__(self, source: IO[bytes], limits: Limits) -> None:
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


def metered(source: IO[bytes], limits: Limits) -> IO[bytes]:
    return cast("IO[bytes]", io.BufferedReader(Metered(source, limits)))


def read_fully(file: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or fewer where the file ends before."""
    parts = []
    while size and (data := file.read(min(size, 1024 * 1024))):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def length_of(source: Source) -> int:
    """Return the number of bytes, by reading them where nothing else tells it."""
    if source.size is not None:
        return source.size
    count = 0
    with source.open() as file:
        while data := file.read(1024 * 1024):
            count += len(data)
    return count
