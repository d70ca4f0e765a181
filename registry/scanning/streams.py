"""Pickles as streams of bounded memory: of what is long, such as weights, only the length is kept."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from typing import IO, cast

LONGEST_KEPT = 4096
"""No name of anything that Python imports is longer."""
LONGEST_LINE = 1024 * 1024
CHUNK_BYTES = 1024 * 1024


class Skipped(bytes):
    """Stands for `length` bytes that nobody looked at."""

    length: int

    def __len__(self) -> int:
        return self.length


class Skimmed:
    """As much of a file as a reader of opcodes asks for: read, readline, tell, back by one, and back to the
    beginning."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._at = 0
        self._last = b""
        self._pushed = b""

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            raise ValueError("it is not read as a whole")
        if size > LONGEST_KEPT:
            return self._skip(size)
        kept, self._pushed = self._pushed[:size], self._pushed[size:]
        data = kept + self._source.read(size - len(kept))
        return self._taken(data)

    def readline(self) -> bytes:
        kept, self._pushed = self._pushed, b""
        line = kept if kept == b"\n" else kept + self._source.readline(LONGEST_LINE)
        if len(line) >= LONGEST_LINE:
            raise ValueError("a line of it has no end")
        return self._taken(line)

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR and offset == -1 and not self._pushed:
            self._pushed, self._at = self._last, max(self._at - len(self._last), 0)
        elif whence == os.SEEK_SET and offset == 0:
            self._source.seek(0)
            self._at, self._last, self._pushed = 0, b"", b""
        else:
            raise io.UnsupportedOperation("only back by one byte, or to the beginning")
        return self._at

    def _taken(self, data: bytes) -> bytes:
        self._at += len(data)
        self._last = data[-1:]
        return data

    def _skip(self, size: int) -> bytes:
        left = size - len(self._pushed)
        self._pushed = b""
        if _is_plain_file(self._source):
            at = self._source.tell()
            left -= min(self._source.seek(0, os.SEEK_END) - at, left)
            self._source.seek(at + size)
        else:
            while left and (chunk := self._source.read(min(left, CHUNK_BYTES))):
                left -= len(chunk)
        if left:
            return b""
        skipped = Skipped()
        skipped.length = size
        self._at += size
        return skipped


def _is_plain_file(source: IO[bytes]) -> bool:
    """Whether seeking costs nothing. In a compressed stream it unpacks all that lies between, and back from
    its beginning."""
    return isinstance(source, io.BufferedReader) and isinstance(source.raw, io.FileIO)


class Inflated(io.RawIOBase):
    """What a zlib stream holds, as joblib compresses."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._inflater = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data and not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._source.read(65536)
            if not packed:
                raise EOFError("the compressed data has no end")
            data = self._inflater.decompress(packed, len(buffer))
            if self._inflater.unused_data:
                raise ValueError("something follows the compressed data")
        buffer[: len(data)] = data
        return len(data)


def _inflated(source: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(Inflated(source))


def _gunzipped(source: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=source))


COMPRESSED: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": _gunzipped,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x5d\0\0": lzma.LZMAFile,
    b"\x78\x01": _inflated,
    b"\x78\x5e": _inflated,
    b"\x78\x9c": _inflated,
    b"\x78\xda": _inflated,
}
"""First bytes -> the stream inside."""
