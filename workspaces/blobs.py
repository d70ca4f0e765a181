"""Content-addressed files below DATA_DIR/blobs: a blob is whole and checked from the moment it has its name."""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from django.conf import settings

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
CHUNK_BYTES = 1024 * 1024


class BlobError(Exception):
    """The bytes are not what their name says."""


def path(sha256: str) -> Path:
    """Where the blob is, or would be; raises BlobError for anything but 64 hex digits."""
    if not SHA256.match(sha256):
        raise BlobError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hex")
    return _root() / sha256[:2] / sha256


def exists(sha256: str) -> bool:
    return path(sha256).is_file()


def keep(sha256: str) -> None:
    """Somebody counts on the blob though no row names it yet: the sweep begins to wait anew (workspaces.sweeping)."""
    os.utime(path(sha256))


def hold(sha256: str) -> bool:
    """`keep` it for whoever is about to name it; False where it is not there (any more)."""
    try:
        keep(sha256)
    except FileNotFoundError:
        return False
    return True


def forgo(sha256: str, kept_at: float) -> None:
    """Let the file count as kept at that moment (Unix seconds), where it is there at all: it has been of use already."""
    with suppress(FileNotFoundError):
        os.utime(path(sha256), (kept_at, kept_at))


def unkept_since(moment: float) -> Iterator[Path]:
    """Every file that nobody wrote or kept since (Unix seconds). Half-written ones lie beside the blobs, under names that are
    no SHA-256."""
    for file in _root().glob("*/*"):
        if _kept_at(file) < moment:
            yield file


def drop(file: Path, *, unkept_since: float) -> int | None:
    """Delete a file of `unkept_since` that nothing names; the bytes freed, None where somebody has kept it in between.

    It is set aside first: who keeps it before that is seen, and who comes after finds nothing there, and sends it again.
    """
    aside = _made("partial") / secrets.token_hex(16)
    try:
        if _kept_at(file) > unkept_since:
            return None
        file.rename(aside)
    except FileNotFoundError:
        return None
    facts = aside.stat()
    if facts.st_mtime > unkept_since:
        aside.rename(file)
        return None
    aside.unlink()
    return facts.st_size


def store_file(source: Path) -> str:
    """Take over a finished file of the hub's own; returns its SHA-256. `source` is gone afterwards."""
    with source.open("rb") as file, BlobWriter() as writer:
        while chunk := file.read(CHUNK_BYTES):
            writer.write(chunk)
        sha256 = writer.finish()
    source.unlink()
    return sha256


def adopt(source: Path, expected: str) -> None:
    """Like `store_file`, without copying: `source` lies below DATA_DIR and is renamed. Raises BlobError, leaving `source`."""
    with source.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if sha256 != expected:
            raise BlobError(f"the bytes have the SHA-256 {sha256}, not {expected}")
        os.fsync(file.fileno())
    target = path(sha256)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    source.replace(target)


class BlobWriter:
    """Write chunks, then `finish`; left without that, nothing remains.

    with BlobWriter() as writer:
        writer.write(chunk)
        sha256 = writer.finish(expected)
    """

    def __init__(self) -> None:
        folder = _made("partial")
        self._path = folder / secrets.token_hex(16)
        self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._file.close()
        except OSError:
            # Of a full disk: what is still buffered does not fit either.
            if error is None:
                raise
        finally:
            self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    @property
    def sha256(self) -> str:
        """Of what was written up to now."""
        return self._hash.hexdigest()

    def finish(self, expected: str | None = None) -> str:
        """Give the bytes their name; raises BlobError, keeping nothing, where they are not `expected`."""
        sha256 = self._hash.hexdigest()
        if expected is not None and sha256 != expected:
            raise BlobError(f"the bytes have the SHA-256 {sha256}, not {expected}")
        self._file.flush()
        os.fsync(self._file.fileno())
        _made(sha256[:2])
        self._path.replace(path(sha256))
        return sha256


def _made(name: str) -> Path:
    # Each by itself: mkdir's mode holds only for the last folder of parents=True.
    _root().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = _root() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _kept_at(file: Path) -> float:
    """Unix seconds; of what is gone, later than any moment."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _root() -> Path:
    return Path(settings.DATA_DIR) / "blobs"
