"""Files that come in parts, side by side: each part a file below DATA_DIR/uploads, joined when the client
says that all are here.

A part that failed is sent again. An upload that was aborted goes at once, one that was forgotten after a day.
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

from tracking.artifacts.body_writer import Received, guarded
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from workspaces import tokens
from workspaces.stored_files.blobs import BlobWriter

MOST_PARTS = 50_000
KEEP_S = 86_400.0
CHUNK_BYTES = 4 * 1024 * 1024
_TOLD = "upload.json"
_DONE = "done"
_ID_BYTES = 16


@dataclass(frozen=True)
class Upload:
    """`target`: the address that the file gets. The client proves by `secret` (stored hashed) that a part is
    its own."""

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
class Begun:
    upload: Upload
    secret: str


def begin(target: str, parts: int) -> Begun:
    """Raises MlflowError for a number of parts that is none."""
    if not 1 <= parts <= MOST_PARTS:
        raise MlflowError(INVALID, f"num_parts: must be from 1 to {MOST_PARTS}; send larger parts.")
    secret = secrets.token_urlsafe(32)
    upload = Upload(secrets.token_hex(_ID_BYTES), target, parts, tokens.digest(secret))
    guarded(lambda: _store(upload))
    return Begun(upload, secret)


def find(upload_id: str, target: str) -> Upload:
    """The upload under way to that address; raises MlflowError."""
    upload = _read(upload_id)
    if upload is None or upload.target != target:
        raise MlflowError(
            MISSING, f"upload_id: there is no upload {upload_id[:64]!r} to this path; begin it again."
        )
    return upload


def opened(upload_id: str, number: int, secret: str) -> Upload:
    """The upload that part `number` belongs to, for who knows its secret; raises MlflowError."""
    upload = _read(upload_id)
    if upload is None or not hmac.compare_digest(upload.secret_digest, tokens.digest(secret)):
        raise MlflowError(
            MISSING, "There is no such upload (any more), or this is not its secret; begin it again."
        )
    if not 1 <= number <= upload.parts:
        raise MlflowError(INVALID, f"The upload has the parts 1 to {upload.parts}.")
    if is_done(upload):
        raise MlflowError(INVALID, "The upload is complete.")
    return upload


def room(upload: Upload, number: int) -> int:
    """How many bytes part `number` may have beside the others."""
    others = sum(file.stat().st_size for file in upload.folder.glob("*.part") if file != upload.part(number))
    return int(settings.MAX_UPLOAD_BYTES) - others


class PartWriter:
    """Write chunks, then `finish`; left without that, nothing remains, and an earlier try of the part is as
    it was."""

    def __init__(self, upload: Upload, number: int) -> None:
        self._upload, self._number = upload, number
        self._path = upload.folder / f"{number}.{secrets.token_hex(8)}"
        self._file = self._path.open("xb", buffering=0)
        self._crc = 0

    def write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._crc = zlib.crc32(chunk, self._crc)

    def finish(self) -> str:
        """The part's ETag."""
        self._path.replace(self._upload.part(self._number))
        etag = f"{self._crc:08x}"
        (self._upload.folder / f"{self._number}.etag").write_text(etag)
        return etag

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def check(upload: Upload, told: Iterable[dict[str, Any]]) -> None:
    """That every part is here, as the client told when it had sent them; raises MlflowError naming those that
    are not."""
    etags = {int(part["part_number"]): str(part.get("etag") or "").strip('"') for part in told}
    if set(etags) != set(range(1, upload.parts + 1)):
        raise MlflowError(INVALID, f"parts: name each of the parts 1 to {upload.parts} once.")
    missing = [number for number, etag in sorted(etags.items()) if not _is_here(upload, number, etag)]
    if missing:
        shown = ", ".join(map(str, missing[:10])) + (" …" if len(missing) > 10 else "")
        raise MlflowError(
            INVALID, f"parts: {shown} did not arrive whole; send them again, then complete the upload."
        )


def join(upload: Upload) -> Received:
    """All parts as one blob; they stay until `settle`, so that it can be tried again."""
    with BlobWriter() as writer:
        for number in range(1, upload.parts + 1):
            with upload.part(number).open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    writer.write(chunk)
        return Received(writer.finish(), writer.size)


def settle(upload: Upload) -> None:
    """The file has its name: the parts go, a word that it is done stays for a client that asks again."""
    with suppress(FileNotFoundError):  # aborted after all: the file is there all the same
        (upload.folder / _DONE).touch()
    for file in (*upload.folder.glob("*.part"), *upload.folder.glob("*.etag")):
        file.unlink(missing_ok=True)


def is_done(upload: Upload) -> bool:
    return (upload.folder / _DONE).exists()


def abort(upload: Upload) -> None:
    shutil.rmtree(upload.folder, ignore_errors=True)


def sweep(now: float | None = None) -> int:
    """Delete uploads that nobody has sent anything to for a day; how many."""
    before = (time.time() if now is None else now) - KEEP_S
    forgotten = [folder for folder in _root().glob("*") if _touched_at(folder) < before]
    for folder in forgotten:
        shutil.rmtree(folder, ignore_errors=True)
    return len(forgotten)


def _store(upload: Upload) -> None:
    for folder in (_root().parent, _root(), upload.folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {"target": upload.target, "parts": upload.parts, "secret_digest": upload.secret_digest}
    (upload.folder / _TOLD).write_text(json.dumps(told))


def _read(upload_id: str) -> Upload | None:
    if len(upload_id) != 2 * _ID_BYTES or not upload_id.isalnum():
        return None
    try:
        told = json.loads((_root() / upload_id / _TOLD).read_text())
    except (OSError, ValueError):
        return None
    return Upload(upload_id, told["target"], told["parts"], told["secret_digest"])


def _is_here(upload: Upload, number: int, etag: str) -> bool:
    try:
        held = (upload.folder / f"{number}.etag").read_text()
    except OSError:
        return False
    return upload.part(number).exists() and etag in ("", held)


def _touched_at(folder: Path) -> float:
    """Unix seconds; of what has just gone, now."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()


def _root() -> Path:
    return Path(settings.DATA_DIR) / "uploads" / "parts"
