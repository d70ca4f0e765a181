"""Makes a zip of files while it is sent. The files are stored without compression, so that the length is
known before and Range works.

Use: `return await response(request, entries, "name.zip", headers=SAFE)`. The CRC of a file stands before its
bytes, where readers of a stream need it, so a file is read once more before it is sent for the first time."""

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
from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from workspaces.stored_files import blob_cache, blobs, preconditions, verification

PIECE_BYTES = 1024 * 1024
MAX_CACHED_CRCS = 100_000
# These values in the old fields say that the real ones are in the ZIP64 fields.
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
# ZIP64 needs version 4.5 to extract; the creator is Unix, so that modes count.
_VERSION, _CREATOR = 45, 3 << 8 | 45
# Flag 11: names are UTF-8. Method 0: stored, so that the length is known before anything is read.
_UTF8, _STORED, _REGULAR_FILE = 1 << 11, 0, 0o100644 << 16
_lock = threading.Lock()
_crcs: LRUCache[tuple[Path | str, int], int] = LRUCache(MAX_CACHED_CRCS)


@dataclass(frozen=True)
class ZipEntry:
    """A file of the zip. `name` in the zip, with `/`; `source`: a file that does not change, such as a blob,
    or the bytes themselves.

    With `sha256` the source is that blob: it is verified before its bytes are sent
    (workspaces.stored_files.verification)."""

    name: str
    source: Path | bytes
    at: datetime | None = None
    sha256: str = ""


@dataclass(frozen=True)
class _Placed:
    entry: ZipEntry
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
                _CREATOR,
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
    """The layout of a zip: the position of every byte. Raises FileNotFoundError for a missing source,
    ValueError for a repeated name."""

    def __init__(self, entries: Iterable[ZipEntry]) -> None:
        self._placed: list[_Placed] = []
        offset = 0
        for entry in entries:
            size = _source_size(entry)
            placed = _Placed(entry, entry.name.encode(), size, offset)
            self._placed.append(placed)
            offset += placed.header_bytes + size
        if len({placed.name for placed in self._placed}) < len(self._placed):
            raise ValueError("Two files of one name cannot lie in one zip.")
        self._directory_at = offset
        self.size = offset + len(self._directory(has_crcs=False))

    @property
    def etag(self) -> str:
        """The entity tag, computed from names, sizes, times and sources (the path of a blob is its
        SHA-256)."""
        digest = hashlib.sha256()
        for placed in self._placed:
            # Not of the content: reading gigabytes to answer a HEAD would defeat its purpose.
            source = placed.entry.source
            identity = (
                hashlib.sha256(source).hexdigest()
                if isinstance(source, bytes)
                else placed.entry.sha256 or str(source)
            )
            digest.update(repr((placed.name, placed.size, _dos_time(placed.entry.at), identity)).encode())
        return f'"{digest.hexdigest()[:32]}"'

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yields the bytes from `start` up to `end`, in pieces of at most 1 MiB (the directory in one)."""
        end = self.size if end is None else end
        for placed in self._placed:
            at = placed.offset + placed.header_bytes
            if start < at and end > placed.offset:
                yield placed.local()[max(start - placed.offset, 0) : end - placed.offset]
            if start < at + placed.size and end > at:
                yield from _content(placed, max(start - at, 0), min(end - at, placed.size))
        if end > self._directory_at:
            yield self._directory()[max(start - self._directory_at, 0) : end - self._directory_at]

    def _directory(self, *, has_crcs: bool = True) -> bytes:
        entries = b"".join(placed.central(_crc(placed) if has_crcs else 0) for placed in self._placed)
        count, at, size = len(self._placed), self._directory_at, len(entries)
        wide = b""
        if count >= _MAX_16 or at >= _MAX_32 or size >= _MAX_32:
            # ZIP64 end of central directory record, and its locator.
            wide = struct.pack(
                "<4sQHHIIQQQQ", b"PK\6\6", 44, _CREATOR, _VERSION, 0, 0, count, count, size, at
            )
            wide += struct.pack("<4sIQI", b"PK\6\7", 0, at + size, 1)
        count_field = min(count, _MAX_16)
        end = struct.pack(
            "<4sHHHHIIH", b"PK\5\6", 0, 0, count_field, count_field, min(size, _MAX_32), min(at, _MAX_32), 0
        )
        return entries + wide + end


async def response(
    request: Request, entries: Sequence[ZipEntry], filename: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns the zip, or the one requested range of it (206; 416 outside it); 304 and 412 if the request's
    conditions demand it. Several ranges are answered with the whole zip."""
    archive = await anyio.to_thread.run_sync(Archive, entries)
    fields = {
        **(headers or {}),
        "Accept-Ranges": "bytes",
        "ETag": archive.etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(filename)}",
        "Content-Type": "application/zip",
    }
    refused = preconditions.failed(request.method, request.headers, archive.etag, None)
    if refused:
        return _refusal(refused, fields)
    spans = preconditions.spans(request.method, request.headers, archive.size, archive.etag, None)
    if spans == []:
        return Response(status_code=416, headers={**fields, "Content-Range": f"bytes */{archive.size}"})
    start, end = spans[0] if spans and len(spans) == 1 else (0, archive.size)
    fields["Content-Length"] = str(end - start)
    is_part = end - start < archive.size
    if is_part:
        fields["Content-Range"] = f"bytes {start}-{end - 1}/{archive.size}"
    status = 206 if is_part else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=fields)
    return StreamingResponse(_sent(archive.pieces(start, end)), status, fields)


def _refusal(status: int, headers: Mapping[str, str]) -> Response:
    if status == preconditions.NOT_MODIFIED:
        answer = Response(
            status_code=status, headers={k: v for k, v in headers.items() if not k.startswith("Content-")}
        )
        del answer.headers["content-length"]
        return answer
    detail = "The files are not in the state that the request names; fetch them again."
    body = {"type": "about:blank", "title": "Precondition failed", "status": status, "detail": detail}
    own_headers = {name: headers[name] for name in ("Cache-Control", "Vary") if name in headers}
    return JSONResponse(body, status, own_headers, media_type="application/problem+json")


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await anyio.to_thread.run_sync(partial(next, pieces, b"")):
        yield piece


def _content(placed: _Placed, start: int, end: int) -> Iterator[bytes]:
    source = placed.entry.source
    if isinstance(source, bytes):
        yield source[start:end]
        return
    with _local_source(placed.entry, source).open("rb") as file:
        if placed.entry.sha256:
            blobs.verify_open(file.fileno(), placed.entry.sha256)
        file.seek(start)
        remaining = end - start
        while remaining:
            piece = file.read(min(remaining, PIECE_BYTES))
            if not piece:
                raise OSError(f"{source} has become shorter")
            remaining -= len(piece)
            yield piece


def _source_size(entry: ZipEntry) -> int:
    if isinstance(entry.source, bytes):
        return len(entry.source)
    return blob_cache.size_of(entry.sha256) if entry.sha256 else entry.source.stat().st_size


def _local_source(entry: ZipEntry, source: Path) -> Path:
    """Returns the file, which is fetched first if it is a blob that is only in the object store."""
    return blob_cache.local_path(entry.sha256) if entry.sha256 else source


def _crc(placed: _Placed) -> int:
    source = placed.entry.source
    if isinstance(source, bytes):
        return zlib.crc32(source)
    key = placed.entry.sha256 or source, placed.size
    with _lock:
        crc = _crcs.get(key)
    if crc is None:
        crc = _read_crc(_local_source(placed.entry, source), placed.entry.sha256)
        with _lock:
            _crcs[key] = crc
    return crc


def _read_crc(source: Path, sha256: str) -> int:
    """Returns the file's CRC. For a blob its SHA-256 is checked at the same time. Raises
    blobs.DamagedBlob."""
    crc, digest = 0, hashlib.sha256()
    with source.open("rb") as file:
        facts = os.fstat(file.fileno())
        while chunk := file.read(PIECE_BYTES):
            crc = zlib.crc32(chunk, crc)
            if sha256:
                digest.update(chunk)
        if sha256 and digest.hexdigest() == sha256:
            verification.remember(sha256, facts)
        elif sha256:
            blobs.verify_open(file.fileno(), sha256)
            raise blobs.DamagedBlob(f"the stored file {sha256} was read with other bytes than before")
    return crc


def _dos_time(at: datetime | None) -> tuple[int, int]:
    """Returns time and date in the format of zip, in UTC; 1980-01-01 if there is none."""
    if at is None or at.year < 1980:
        return 0, 1 << 5 | 1
    at = at.astimezone(UTC)
    return at.hour << 11 | at.minute << 5 | at.second // 2, (
        min(at.year, 2107) - 1980
    ) << 9 | at.month << 5 | at.day
