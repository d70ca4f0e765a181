"""Storage of multipart uploads, one folder each: DATA_DIR/uploads/parts/<id>.

The folder holds upload.json (target, number of parts, digest of the secret), <n>.part and <n>.etag for each
part, and the marker `done` after completion. An aborted upload is deleted at once, an abandoned one after a
week (`KEEP_UNFINISHED_S`).
"""

from __future__ import annotations

import hmac
import json
import secrets
import shutil
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from tracking.artifacts.body_writer import StoredBlob, with_disk_errors
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from workspaces.authentication.token_text import digest
from workspaces.stored_files.blob_writer import BlobWriter
from workspaces.stored_files.resumable import KEEP_UNFINISHED_S

MAX_PARTS = 50_000
CHUNK_BYTES = 4 * 1024 * 1024
_RECORD = "upload.json"
_DONE = "done"
_ID_BYTES = 16


@dataclass(frozen=True)
class PartsUpload:
    """An upload in parts. `target` is the address of the finished file. Requests that send parts must contain
    the secret, of which only the digest is stored."""

    id: str
    target: str
    parts: int
    secret_digest: str

    @property
    def folder(self) -> Path:
        return _root() / self.id

    def part(self, number: int) -> Path:
        return self.folder / f"{number}.part"


@dataclass(frozen=True)
class StartedUpload:
    upload: PartsUpload
    secret: str


def start_upload(target: str, parts: int) -> StartedUpload:
    """Creates an upload. Raises MlflowError for an invalid number of parts."""
    if not 1 <= parts <= MAX_PARTS:
        raise MlflowError(INVALID, f"num_parts: must be from 1 to {MAX_PARTS}; send larger parts.")
    secret = secrets.token_urlsafe(32)
    upload = PartsUpload(secrets.token_hex(_ID_BYTES), target, parts, digest(secret))
    with_disk_errors(lambda: _store(upload))
    return StartedUpload(upload, secret)


def find_upload(upload_id: str, target: str) -> PartsUpload:
    """Returns the upload with that id and target. Raises MlflowError."""
    upload = _read(upload_id)
    if upload is None or upload.target != target:
        raise MlflowError(
            MISSING, f"upload_id: there is no upload {upload_id[:64]!r} to this path; start it again."
        )
    return upload


def authorize_part(upload_id: str, number: int, secret: str) -> PartsUpload:
    """Returns the upload of part `number` if the secret is right. Raises MlflowError."""
    upload = _read(upload_id)
    if upload is None or not hmac.compare_digest(upload.secret_digest, digest(secret)):
        raise MlflowError(
            MISSING,
            "There is no such upload (it may have expired), or this is not its secret. Start it again.",
        )
    if not 1 <= number <= upload.parts:
        raise MlflowError(INVALID, f"The upload has the parts 1 to {upload.parts}.")
    if is_done(upload):
        raise MlflowError(INVALID, "The upload is complete.")
    return upload


def max_part_bytes(upload: PartsUpload, number: int) -> int:
    """Returns the bytes that part `number` may have, given the other parts."""
    others = sum(file.stat().st_size for file in upload.folder.glob("*.part") if file != upload.part(number))
    # MAX_UPLOAD_BYTES limits all parts together.
    return int(settings.MAX_UPLOAD_BYTES) - others


class PartWriter:
    """Writes a part: chunks, then `finish`. Without `finish` an earlier version of the part stays
    unchanged."""

    def __init__(self, upload: PartsUpload, number: int) -> None:
        self._upload, self._number = upload, number
        # Each try has a file of its own, so that one that is cut off leaves an earlier complete part in
        # place.
        self._path = upload.folder / f"{number}.{secrets.token_hex(8)}"
        self._file = self._path.open("xb", buffering=0)
        self._crc = 0

    def write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        # An unbuffered file may write fewer bytes than it is given.
        while rest:
            rest = rest[self._file.write(rest) :]
        self._crc = zlib.crc32(chunk, self._crc)

    def finish(self) -> str:
        """Puts the part in place and returns its ETag, the CRC-32 of its bytes."""
        self._path.replace(self._upload.part(self._number))
        etag = f"{self._crc:08x}"
        (self._upload.folder / f"{self._number}.etag").write_text(etag)
        return etag

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def check_parts(upload: PartsUpload, content: Iterable[dict[str, Any]]) -> None:
    """Checks that every part has arrived with the ETag that the client lists. Raises MlflowError with the
    missing ones."""
    # HTTP headers quote ETags; clients list them with or without the quotes.
    etags = {int(part["part_number"]): str(part.get("etag") or "").strip('"') for part in content}
    if set(etags) != set(range(1, upload.parts + 1)):
        raise MlflowError(INVALID, f"parts: name each of the parts 1 to {upload.parts} once.")
    missing = [number for number, etag in sorted(etags.items()) if not _has_part(upload, number, etag)]
    if missing:
        listing = ", ".join(map(str, missing[:10])) + (" …" if len(missing) > 10 else "")
        raise MlflowError(
            INVALID, f"parts: {listing} are incomplete; send them again, then complete the upload."
        )


def join_parts(upload: PartsUpload) -> StoredBlob:
    """Stores all parts as one blob. The parts stay until `mark_done`, so that a client can retry."""
    with BlobWriter() as writer:
        for number in range(1, upload.parts + 1):
            with upload.part(number).open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    writer.write(chunk)
        return StoredBlob(writer.finish(), writer.size)


def bytes_of_parts(upload: PartsUpload) -> int:
    return sum(upload.part(number).stat().st_size for number in range(1, upload.parts + 1))


def mark_done(upload: PartsUpload) -> None:
    """Deletes the parts after the file was stored; the marker remains, for clients that repeat the call."""
    with suppress(FileNotFoundError):  # aborted at the same time; the file exists anyway
        (upload.folder / _DONE).touch()
    for file in (*upload.folder.glob("*.part"), *upload.folder.glob("*.etag")):
        file.unlink(missing_ok=True)


def is_done(upload: PartsUpload) -> bool:
    return (upload.folder / _DONE).exists()


def delete_upload(upload: PartsUpload) -> None:
    shutil.rmtree(upload.folder, ignore_errors=True)


def sweep(now: float | None = None) -> int:
    """Deletes uploads without activity for `KEEP_UNFINISHED_S`; returns how many."""
    cutoff = (time.time() if now is None else now) - KEEP_UNFINISHED_S
    expired = [folder for folder in _root().glob("*") if _touched_at(folder) < cutoff]
    for folder in expired:
        shutil.rmtree(folder, ignore_errors=True)
    return len(expired)


def _store(upload: PartsUpload) -> None:
    for folder in (_root().parent, _root(), upload.folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {"target": upload.target, "parts": upload.parts, "secret_digest": upload.secret_digest}
    (upload.folder / _RECORD).write_text(json.dumps(content))


def _read(upload_id: str) -> PartsUpload | None:
    # The id becomes part of a path, so only ids of the hub's own form are accepted.
    if len(upload_id) != 2 * _ID_BYTES or not upload_id.isalnum():
        return None
    try:
        content = json.loads((_root() / upload_id / _RECORD).read_text())
    except (OSError, ValueError):
        return None
    return PartsUpload(upload_id, content["target"], content["parts"], content["secret_digest"])


def _has_part(upload: PartsUpload, number: int, etag: str) -> bool:
    try:
        stored = (upload.folder / f"{number}.etag").read_text()
    except OSError:
        return False
    # Clients may leave the ETag out.
    return upload.part(number).exists() and etag in ("", stored)


def _touched_at(folder: Path) -> float:
    """Returns the folder's modification time in Unix seconds; the current time if it was deleted
    meanwhile."""
    try:
        # Every new part changes the folder's entries and so its modification time.
        return folder.stat().st_mtime
    except OSError:
        return time.time()


def _root() -> Path:
    return Path(settings.DATA_DIR) / "uploads" / "parts"
