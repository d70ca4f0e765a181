"""Reads pickles in bounded memory: of long values, such as weights, only the length is stored."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from typing import IO, cast

# No name of anything that Python imports is longer.
MAX_CONTENT_BYTES = 4096
LONGEST_LINE = 1024 * 1024
CHUNK_BYTES = 1024 * 1024


class Skipped(bytes):
    """Stands for `length` bytes that were passed over."""

    length: int

    # pickletools compares the length of what it has read with the one that it requested.
    def __len__(self) -> int:
        return self.length


class Skimmed:
    """A file as pickletools reads it: read, readline and tell; and one step back."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._at = 0
        self._last = b""
        self._pushed = b""

    def read(self, size: int) -> bytes:
        if size > MAX_CONTENT_BYTES:
            return self._skip(size)
        buffered, self._pushed = self._pushed[:size], self._pushed[size:]
        data = buffered + self._source.read(size - len(buffered))
        return self._consume(data)

    def readline(self) -> bytes:
        data, self._pushed = self._pushed, b""
        line = data if data == b"\n" else data + self._source.readline(LONGEST_LINE)
        if len(line) >= LONGEST_LINE:
            raise ValueError("a line of it has no end")
        return self._consume(line)

    def tell(self) -> int:
        return self._at

    def step_back(self) -> None:
        """Makes the byte that was read last the next one again."""
        self._pushed, self._at = self._last, self._at - len(self._last)

    def _consume(self, data: bytes) -> bytes:
        self._at += len(data)
        self._last = data[-1:]
        return data

    def _skip(self, size: int) -> bytes:
        remaining = size - len(self._pushed)
        self._pushed = b""
        if _is_plain_file(self._source):
            # Seeking beyond the end succeeds, so the file's size shows how many bytes are missing.
            at = self._source.tell()
            remaining -= min(self._source.seek(0, os.SEEK_END) - at, remaining)
            self._source.seek(at + size)
        else:
            while remaining and (chunk := self._source.read(min(remaining, CHUNK_BYTES))):
                remaining -= len(chunk)
        if remaining:
            # Too short a result: pickletools then reports that the pickle is cut off.
            return b""
        skipped = Skipped()
        skipped.length = size
        self._at += size
        return skipped


def _is_plain_file(source: IO[bytes]) -> bool:
    """Whether seeking is cheap. A compressed stream unpacks everything in between, and from its start when it
    seeks back."""
    return isinstance(source, io.BufferedReader) and isinstance(source.raw, io.FileIO)


class Inflated(io.RawIOBase):
    """The content of a zlib stream, which joblib writes."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflater = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data and not self._inflater.eof:
            # decompress() returns at most as many bytes as requested and leaves its remaining input here, so
            # a bomb takes no more memory.
            packed = self._inflater.unconsumed_tail or self._source.read(65536)
            if not packed:
                raise EOFError("the compressed data has no end")
            data = self._inflater.decompress(packed, len(buffer))
            # Bytes after the stream would not be read, and a file with unread bytes must not be called clean.
            if self._inflater.unused_data:
                raise ValueError("something follows the compressed data")
        buffer[: len(data)] = data
        return len(data)


def _inflated(source: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(Inflated(source))


def _gunzipped(source: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=source))


# First bytes -> the stream inside.
COMPRESSED: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": _gunzipped,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    # The older .lzma format has no signature: the usual properties, then the low bytes of the dictionary's
    # size.
    b"\x5d\0\0": lzma.LZMAFile,
    # The second byte of a zlib header depends on the level of compression.
    b"\x78\x01": _inflated,
    b"\x78\x5e": _inflated,
    b"\x78\x9c": _inflated,
    b"\x78\xda": _inflated,
}
