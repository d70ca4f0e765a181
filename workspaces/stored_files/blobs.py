"""Content-addressed files below DATA_DIR/blobs. A blob is complete and verified from the moment at which it
has its name.

A blob is sealed: it gets its name once, when no process has it open for writing any more, with the mode 0400,
and no later upload of the same bytes replaces it. `verify` reads it whole and sets it aside if its content no
longer has the SHA-256 that is its name.

With BLOB_STORE a blob lies in an object store, and the file here is a copy, or waits for its upload
(workspaces.object_store). Then a row says whether the blob exists, and when it was kept last;
workspaces.stored_files.blob_cache opens it wherever it is."""

from __future__ import annotations

import errno
import logging
import math
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from workspaces.object_store import rows
from workspaces.stored_files import deletions, verification

log = logging.getLogger(__name__)
SHA256 = re.compile(r"[0-9a-f]{64}\Z")
CHUNK_BYTES = 1024 * 1024
# Readable by the hub's own account only, and by nobody writable: an accidental write fails instead of
# damaging what others have named by its hash.
SEALED = 0o400
# Numbers of the errors of a disk, or of a quota, that has no room.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What file systems without hard links, or with a limit on their number, answer.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_DAMAGED = "damaged"
# A lock for each of 64 groups of hashes: one for each file would have to be made and forgotten again.
_verifying = [threading.Lock() for _ in range(64)]


class BlobError(Exception):
    """The bytes do not have the SHA-256 that is their name."""


class DamagedBlob(BlobError):
    """A stored file no longer has the SHA-256 that is its name; it was set aside."""


def path(sha256: str) -> Path:
    """Returns the path that the blob has, or would have. Raises BlobError for anything but 64 hex digits."""
    if not SHA256.match(sha256):
        raise BlobError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hex")
    return root() / sha256[:2] / sha256


def exists(sha256: str) -> bool:
    """Returns whether the blob is on this disk, or in the object store."""
    return path(sha256).is_file() or rows.live_object(sha256) is not None


def keep(sha256: str) -> None:
    """Marks a blob as in use though no row names it yet: the period until the sweep deletes it starts anew
    (workspaces.stored_files.blob_gc)."""
    file = path(sha256)
    if rows.extend_object(sha256):
        return
    before = file.stat()
    set_time(file)
    verification.carry_over(sha256, before, file.stat())
    # Of a time without the store, or one whose row has just ended: it is uploaded from here.
    rows.record_object(sha256, before.st_size)


def hold(sha256: str) -> bool:
    """Calls `keep` for a blob that is about to be named. Returns False if it does not exist."""
    try:
        keep(sha256)
    except FileNotFoundError:
        return False
    return True


def set_stored_time(sha256: str, stored_at: float) -> None:
    """Sets the time at which the blob was kept last to `stored_at` (Unix seconds), if it exists. An old time
    lets the next sweep delete it."""
    with suppress(FileNotFoundError):
        os.utime(path(sha256), (stored_at, stored_at))
    rows.set_kept_time(sha256, stored_at)


def unkept_since(moment: float) -> Iterator[Path]:
    """Yields every file that nobody has written or kept since `moment` (Unix seconds). Unfinished ones are
    included; their names are no SHA-256."""
    for file in root().glob("*/*"):
        if file.parent.name != _DAMAGED and _stored_at(file) < moment:
            yield file


def discard(sha256: str, *, unkept_since: float) -> int | None:
    """Like `drop`, for the blob of that hash, wherever it lies. An object of the store goes later
    (workspaces.stored_files.object_sweep)."""
    with deletions.allowed() as is_allowed:
        if not is_allowed:
            return None
        if rows.live_object(sha256) is None:
            return _drop(path(sha256), unkept_since)
        size = rows.discard_object(sha256, unkept_since=unkept_since)
        if size is not None:
            # A copy: its own time says nothing, except if somebody has stored it anew in this moment.
            _drop(path(sha256), unkept_since)
        return size


def drop(file: Path, *, unkept_since: float) -> int | None:
    """Deletes a file of `unkept_since` that no row names. Returns the bytes freed, or None if somebody has
    kept it in between, or a backup runs, whose database may name it.

    The file is renamed first: a `keep` before that is noticed, and later callers find no blob and upload it
    again."""
    with deletions.allowed() as is_allowed:
        return _drop(file, unkept_since) if is_allowed else None


def _drop(file: Path, unkept_since: float) -> int | None:
    aside = part_path()
    try:
        if _stored_at(file) > unkept_since:
            return None
        file.rename(aside)
    except FileNotFoundError:
        return None
    # Asked of the file itself: a `keep` between the look and the rename has changed its time.
    facts = aside.stat()
    if facts.st_mtime > unkept_since:
        _name(aside, file.name) if SHA256.match(file.name) else aside.rename(file)
        return None
    aside.unlink()
    return facts.st_size


def publish(part: Path, sha256: str) -> None:
    """Gives a file below DATA_DIR/blobs the name of its blob; `part` does not exist afterwards.

    The caller has computed `sha256` from the bytes themselves, has called `seal`, and has no open descriptor
    of the file. An existing blob is not replaced: then `part` is deleted. Only if that blob is damaged is it
    set aside, and `part` takes its place."""
    size = part.stat().st_size
    publish_copy(part, sha256)
    rows.record_object(sha256, size)


def publish_copy(part: Path, sha256: str) -> None:
    """Like `publish`, of a blob that the object store has."""
    _make_folder(sha256[:2])
    # Compared below: if the name belongs to another file, that one was there before, and nothing is known of
    # it.
    inode = part.stat().st_ino
    _name(part, sha256)
    with suppress(FileNotFoundError):
        facts = path(sha256).stat()
        if facts.st_ino == inode:
            # These very bytes were hashed on their way to the disk: the first download need not do it again.
            verification.remember(sha256, facts)


def seal(descriptor: int) -> None:
    """Makes a finished file read-only and writes it to the disk: the last step before its descriptor is
    closed."""
    os.fchmod(descriptor, SEALED)
    # On the disk before it gets its name; after a power failure a name without bytes would count as the whole
    # file.
    os.fsync(descriptor)


def verify(sha256: str) -> None:
    """Reads the blob whole, unless this process has done so since it last changed.

    Raises DamagedBlob if its content does not have the SHA-256 that is its name; it is then set aside, and
    `exists` is False."""
    with path(sha256).open("rb") as file:
        verify_open(file.fileno(), sha256)


def verify_open(descriptor: int, sha256: str) -> None:
    """Like `verify`, for a blob that the caller has open."""
    # Several requests for the same large file wait for one reading of it.
    with _verifying[int(sha256[:2], 16) % len(_verifying)]:
        facts = os.fstat(descriptor)
        if verification.is_verified(sha256, facts):
            return
        # A second reading tells a damaged file from one bad transfer.
        for _ in range(2):
            if verification.sha256_of(descriptor) == sha256:
                verification.remember(sha256, facts)
                return
        _set_aside(sha256, facts)
    raise DamagedBlob(f"the stored file {sha256} no longer has the content that its name says")


def absence(sha256: str) -> str:
    """Returns why the bytes of a file are not available, and what to do: the rest of a sentence that begins
    with 'The bytes of NAME'."""
    if (root() / _DAMAGED / sha256).exists():
        return (
            "were damaged on the hub's disk and are set aside; upload the file again, or restore it "
            "from a backup"
        )
    return "are missing on the hub; restore its data folder from a backup"


def part_path() -> Path:
    """Returns a new random path below DATA_DIR/blobs for a file that is to become a blob."""
    return _make_folder("partial") / secrets.token_hex(16)


def _name(part: Path, sha256: str) -> None:
    """Links `part` to the blob's name unless an intact file has it already, then removes `part`."""
    target = path(sha256)
    while True:
        try:
            _link(part, target)
        except FileExistsError:
            # It may go between the two calls: the sweep takes it, or it is damaged and set aside. Then there
            # is room for ours.
            if not (_is_intact(sha256) and hold(sha256)):
                continue
        part.unlink(missing_ok=True)
        return


def _link(part: Path, target: Path) -> None:
    """Links `part` to `target`. Raises FileExistsError if `target` exists, whatever it is."""
    try:
        os.link(part, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links. Who comes in between has brought the same verified bytes.
        if target.exists():
            raise FileExistsError(target) from error
        part.rename(target)


def _is_intact(sha256: str) -> bool:
    try:
        verify(sha256)
    except (DamagedBlob, FileNotFoundError):
        return False
    return True


def _set_aside(sha256: str, facts: os.stat_result) -> None:
    file, aside = path(sha256), _make_folder(_DAMAGED) / sha256
    with suppress(FileNotFoundError):
        # The file of this name may be another one by now, which a new upload has brought.
        if file.stat().st_ino == facts.st_ino:
            file.replace(aside)
    verification.forget(sha256)
    rows.forget_upload(sha256)
    log.error(
        "The stored file %s is damaged: its content no longer has the SHA-256 that is its name. It was "
        "moved to %s. "
        "Check the disk, and restore the file from a backup or have it uploaded again.",
        file,
        aside,
    )


def set_time(file: Path | int) -> float:
    """Sets a file's time to now, in nanoseconds, and returns it in Unix seconds. The clock that the kernel
    uses for files may lag by milliseconds."""
    now = time.time_ns()
    os.utime(file, ns=(now, now))
    return os.stat(file).st_mtime  # noqa: PTH116 - of a descriptor, too


def _make_folder(name: str) -> Path:
    # Each by itself: mkdir's mode holds only for the last folder of parents=True.
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = root() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _stored_at(file: Path) -> float:
    """Returns the file's time in Unix seconds; infinity for a file that does not exist."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def root() -> Path:
    """Returns the folder of all blobs."""
    return Path(settings.DATA_DIR) / "blobs"
