"""Writes a new stored file chunk by chunk and hashes it on the way."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from workspaces.stored_files import blobs


class BlobWriter:
    """Writes a new blob: write chunks, then call `finish`. If `finish` is not called, nothing remains.

    with BlobWriter() as writer:
        writer.write(chunk)
        sha256 = writer.finish(expected)
    """

    def __init__(self) -> None:
        self._path = blobs.part_path()
        # O_EXCL and a name that nobody can know: no other process, and no link, can be in its place.
        self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._hash = hashlib.sha256()
        self.size = 0
        self.published_at = 0.0
        """Unix seconds; until somebody else keeps the blob, the time of its file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Where it is still open, it was not finished: what is left in its buffer goes with it, even if the
        # disk is full.
        with suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    def flush(self) -> None:
        """Lets readers see what has been written up to now."""
        self._file.flush()

    def open_to_read(self) -> int:
        """Returns a descriptor of the unfinished file, for reading only, which the caller closes. It stays
        good when the file gets its name, and when it is dropped."""
        return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes written up to now."""
        return self._hash.hexdigest()

    def finish(self, expected: str | None = None) -> str:
        """Publishes the bytes under their SHA-256 and returns it. Raises BlobError, and stores nothing, if it
        is not `expected`."""
        sha256 = self._hash.hexdigest()
        if expected is not None and sha256 != expected:
            raise blobs.BlobError(f"the bytes have the SHA-256 {sha256}, not {expected}")
        self._seal()
        blobs.publish(self._path, sha256)
        return sha256

    def finish_copy(self) -> None:
        """Publishes the bytes, which were read from the object store, as a copy. The caller has compared
        their SHA-256."""
        self._seal()
        blobs.publish_copy(self._path, self._hash.hexdigest())

    def _seal(self) -> None:
        self._file.flush()
        # Before it is read-only, and before it has its name: whoever sees it there sees its final time.
        self.published_at = blobs.set_time(self._file.fileno())
        blobs.seal(self._file.fileno())
        self._file.close()


def store_file(source: Path) -> str:
    """Makes a blob of a finished file of the hub's own; returns its SHA-256. `source` is deleted."""
    with source.open("rb") as file, BlobWriter() as writer:
        while chunk := file.read(blobs.CHUNK_BYTES):
            writer.write(chunk)
        sha256 = writer.finish()
    source.unlink()
    return sha256
