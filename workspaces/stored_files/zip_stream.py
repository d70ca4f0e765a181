"""Files of the hub as one zip that is made while it is sent: stored, so that its length is known and Range
works.

For whoever hands out a folder: `return await response(request, entries, "name.zip", headers=SAFE)`. A CRC
stands before its file's bytes (readers that stream need it there), so a file is read once more before its
first sending."""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from workspaces.stored_files import blobs, preconditions, verification

PIECE_BYTES = 1024 * 1024
MOST_KNOWN = 100_000
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_VERSION, _MADE_BY = 45, 3 << 8 | 45
_UTF8, _STORED, _REGULAR_FILE = 1 << 11, 0, 0o100644 << 16
_lock = threading.Lock()
_known: dict[tuple[Path | str, int], int] = {}


@dataclass(frozen=True)
class Entry:
    """`name` in the zip, with `/`; `source`: a file that does not change, such as a blob, or the bytes
    themselves.

    With `sha256` the source is that blob: it is verified before its bytes leave
    (workspaces.stored_files.verification)."""

    name: str
    source: Path | bytes
    at: datetime | None = None
    sha256: str = ""


@dataclass(frozen=True)
class _Placed:
    entry: Entry
    name: bytes
    size: int
    offset: int

    @property
    def is_large(self) -> bool:
        return self.size >= _MAX_32

    @property
    def header_bytes(self) -> int:
        return 30 + len(self.name) + (20 if self.is_large else 0)

    def local(self) -> bytes:
        extra = struct.pack("<HHQQ", 1, 16, self.size, self.size) if self.is_large else b""
        size = _MAX_32 if self.is_large else self.size
        return (
            struct.pack(
                "<4sHHHHHIIIHH",
                b"PK\3\4",
                _VERSION,
                _UTF8,
                _STORED,
                *_dos_time(self.entry.at),
                _crc(self),
                size,
                size,
                len(self.name),
                len(extra),
            )
            + self.name
            + extra
        )

    def central(self, crc: int) -> bytes:
        wide = [self.size, self.size] if self.is_large else []
        wide += [self.offset] if self.offset >= _MAX_32 else []
        extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        size = _MAX_32 if self.is_large else self.size
        return (
            struct.pack(
                "<4sHHHHHHIIIHHHHHII",
                b"PK\1\2",
                _MADE_BY,
                _VERSION,
                _UTF8,
                _STORED,
                *_dos_time(self.entry.at),
                crc,
                size,
                size,
                len(self.name),
                len(extra),
                0,
                0,
                0,
                _REGULAR_FILE,
                min(self.offset, _MAX_32),
            )
            + self.name
            + extra
        )


class Archive:
    """Where every byte of the zip will lie; raises FileNotFoundError for a source that is gone, ValueError
    for a name twice."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._placed: list[_Placed] = []
        offset = 0
        for entry in entries:
            size = len(entry.source) if isinstance(entry.source, bytes) else entry.source.stat().st_size
            placed = _Placed(entry, entry.name.encode(), size, offset)
            self._placed.append(placed)
            offset += placed.header_bytes + size
        if len({placed.name for placed in self._placed}) < len(self._placed):
            raise ValueError("Two files of one name cannot lie in one zip.")
        self._directory_at = offset
        self.size = offset + len(self._directory(known=False))

    @property
    def etag(self) -> str:
        """Of names, sizes, times and where the bytes come from: a blob's path is its SHA-256."""
        digest = hashlib.sha256()
        for placed in self._placed:
            source = placed.entry.source
            told = (
                hashlib.sha256(source).hexdigest()
                if isinstance(source, bytes)
                else placed.entry.sha256 or str(source)
            )
            digest.update(repr((placed.name, placed.size, _dos_time(placed.entry.at), told)).encode())
        return f'"{digest.hexdigest()[:32]}"'

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `end`, in pieces of at most 1 MiB (the directory: one)."""
        end = self.size if end is None else end
        for placed in self._placed:
            at = placed.offset + placed.header_bytes
            if start < at and end > placed.offset:
                yield placed.local()[max(start - placed.offset, 0) : end - placed.offset]
            if start < at + placed.size and end > at:
                yield from _content(placed, max(start - at, 0), min(end - at, placed.size))
        if end > self._directory_at:
            yield self._directory()[max(start - self._directory_at, 0) : end - self._directory_at]

    def _directory(self, *, known: bool = True) -> bytes:
        entries = b"".join(placed.central(_crc(placed) if known else 0) for placed in self._placed)
        count, at, size = len(self._placed), self._directory_at, len(entries)
        wide = b""
        if count >= _MAX_16 or at >= _MAX_32 or size >= _MAX_32:
            wide = struct.pack(
                "<4sQHHIIQQQQ", b"PK\6\6", 44, _MADE_BY, _VERSION, 0, 0, count, count, size, at
            )
            wide += struct.pack("<4sIQI", b"PK\6\7", 0, at + size, 1)
        shown = min(count, _MAX_16)
        end = struct.pack(
            "<4sHHHHIIH", b"PK\5\6", 0, 0, shown, shown, min(size, _MAX_32), min(at, _MAX_32), 0
        )
        return entries + wide + end


async def response(
    request: Request, entries: Sequence[Entry], filename: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    """The zip, or the one range of it that is asked for (206; 416 outside it); 304 and 412 where the
    request's conditions say so. Several ranges at once are answered with the whole."""
    archive = await anyio.to_thread.run_sync(Archive, entries)
    told = {
        **(headers or {}),
        "Accept-Ranges": "bytes",
        "ETag": archive.etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(filename)}",
        "Content-Type": "application/zip",
    }
    refused = preconditions.failed(request.method, request.headers, archive.etag, None)
    if refused:
        return _refusal(refused, told)
    spans = preconditions.spans(request.method, request.headers, archive.size, archive.etag, None)
    if spans == []:
        return Response(status_code=416, headers={**told, "Content-Range": f"bytes */{archive.size}"})
    start, end = spans[0] if spans and len(spans) == 1 else (0, archive.size)
    told["Content-Length"] = str(end - start)
    is_part = end - start < archive.size
    if is_part:
        told["Content-Range"] = f"bytes {start}-{end - 1}/{archive.size}"
    status = 206 if is_part else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=told)
    return StreamingResponse(_sent(archive.pieces(start, end)), status, told)


def _refusal(status: int, told: Mapping[str, str]) -> Response:
    if status == preconditions.NOT_MODIFIED:
        answer = Response(
            status_code=status, headers={k: v for k, v in told.items() if not k.startswith("Content-")}
        )
        del answer.headers["content-length"]
        return answer
    detail = "The files are not in the state that the request names; fetch them anew."
    body = {"type": "about:blank", "title": "Precondition failed", "status": status, "detail": detail}
    kept = {name: told[name] for name in ("Cache-Control", "Vary") if name in told}
    return JSONResponse(body, status, kept, media_type="application/problem+json")


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await anyio.to_thread.run_sync(partial(next, pieces, b"")):
        yield piece


def _content(placed: _Placed, start: int, end: int) -> Iterator[bytes]:
    source = placed.entry.source
    if isinstance(source, bytes):
        yield source[start:end]
        return
    with source.open("rb") as file:
        if placed.entry.sha256:
            blobs.verify_open(file.fileno(), placed.entry.sha256)
        file.seek(start)
        left = end - start
        while left:
            piece = file.read(min(left, PIECE_BYTES))
            if not piece:
                raise OSError(f"{source} has become shorter")
            left -= len(piece)
            yield piece


def _crc(placed: _Placed) -> int:
    source = placed.entry.source
    if isinstance(source, bytes):
        return zlib.crc32(source)
    key = placed.entry.sha256 or source, placed.size
    found = _known.get(key)
    if found is None:
        found = _read_crc(source, placed.entry.sha256)
        with _lock:
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            _known[key] = found
    return found


def _read_crc(source: Path, sha256: str) -> int:
    """The file's CRC; of a blob, its SHA-256 is checked in the same reading. Raises blobs.DamagedBlob."""
    found, digest = 0, hashlib.sha256()
    with source.open("rb") as file:
        facts = os.fstat(file.fileno())
        while chunk := file.read(PIECE_BYTES):
            found = zlib.crc32(chunk, found)
            if sha256:
                digest.update(chunk)
        if sha256 and digest.hexdigest() == sha256:
            verification.remember(sha256, facts)
        elif sha256:
            blobs.verify_open(file.fileno(), sha256)
            raise blobs.DamagedBlob(f"the stored file {sha256} was read with other bytes than before")
    return found


def _dos_time(at: datetime | None) -> tuple[int, int]:
    """Time and date as a zip tells them, in UTC; 1980-01-01 where there is none."""
    if at is None or at.year < 1980:
        return 0, 1 << 5 | 1
    at = at.astimezone(UTC)
    return at.hour << 11 | at.minute << 5 | at.second // 2, (
        min(at.year, 2107) - 1980
    ) << 9 | at.month << 5 | at.day
