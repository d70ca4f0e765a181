"""Content-addressed files below DATA_DIR/blobs: a blob is whole and checked from the moment it has its name.

A blob is sealed: it gets its name once, when nothing has it open for writing any more, with the mode 0400,
and no later upload of the same bytes replaces it. `verify` reads it whole and sets it aside if its content is
no longer what its name says."""

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

from workspaces.stored_files import verification

log = logging.getLogger(__name__)
SHA256 = re.compile(r"[0-9a-f]{64}\Z")
CHUNK_BYTES = 1024 * 1024
SEALED = 0o400
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors of a disk, or of a quota, that has no room."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_DAMAGED = "damaged"
_verifying = [threading.Lock() for _ in range(64)]


class BlobError(Exception):
    """The bytes are not what their name says."""


class DamagedBlob(BlobError):
    """A stored file no longer has the SHA-256 that is its name; it was set aside."""


def path(sha256: str) -> Path:
    """Where the blob is, or would be; raises BlobError for anything but 64 hex digits."""
    if not SHA256.match(sha256):
        raise BlobError(f"{sha256[:80]!r} is not a SHA-256 in lower-case hex")
    return root() / sha256[:2] / sha256


def exists(sha256: str) -> bool:
    return path(sha256).is_file()


def keep(sha256: str) -> None:
    """Somebody counts on the blob though no row names it yet: the sweep begins to wait anew
    (workspaces.stored_files.blob_gc)."""
    file = path(sha256)
    before = file.stat()
    set_time(file)
    verification.carry_over(sha256, before, file.stat())


def hold(sha256: str) -> bool:
    """`keep` it for whoever is about to name it; False where it is not there (any more)."""
    try:
        keep(sha256)
    except FileNotFoundError:
        return False
    return True


def forgo(sha256: str, kept_at: float) -> None:
    """Let the file count as kept at that moment (Unix seconds), where it is there at all: it has been of use
    already."""
    with suppress(FileNotFoundError):
        os.utime(path(sha256), (kept_at, kept_at))


def unkept_since(moment: float) -> Iterator[Path]:
    """Every file that nobody wrote or kept since (Unix seconds). Half-written ones lie beside the blobs,
    under names that are no SHA-256."""
    for file in root().glob("*/*"):
        if file.parent.name != _DAMAGED and _kept_at(file) < moment:
            yield file


def drop(file: Path, *, unkept_since: float) -> int | None:
    """Delete a file of `unkept_since` that nothing names; the bytes freed, None where somebody has kept it in
    between.

    It is set aside first: who keeps it before that is seen, and who comes after finds nothing there, and
    sends it again."""
    aside = part_path()
    try:
        if _kept_at(file) > unkept_since:
            return None
        file.rename(aside)
    except FileNotFoundError:
        return None
    facts = aside.stat()
    if facts.st_mtime > unkept_since:
        _name(aside, file.name) if SHA256.match(file.name) else aside.rename(file)
        return None
    aside.unlink()
    return facts.st_size


def publish(part: Path, sha256: str) -> None:
    """Give a file below DATA_DIR/blobs its name; `part` is gone afterwards.

    The caller has computed `sha256` from the bytes themselves, has called `seal`, and holds no open
    descriptor of the file. A blob that is there already is never replaced: then `part` is dropped. Only if
    that blob turns out to be damaged is it set aside, and `part` takes its place."""
    _made(sha256[:2])
    inode = part.stat().st_ino
    _name(part, sha256)
    with suppress(FileNotFoundError):
        facts = path(sha256).stat()
        if facts.st_ino == inode:
            # These very bytes were hashed on their way to the disk: the first download need not do it again.
            verification.remember(sha256, facts)


def seal(descriptor: int) -> None:
    """Make a finished file read-only and have it on the disk: the last thing before its descriptor is
    closed."""
    os.fchmod(descriptor, SEALED)
    os.fsync(descriptor)


def verify(sha256: str) -> None:
    """Read the blob whole, unless this process has done so since it last changed.

    Raises DamagedBlob if its content is not what its name says; it is then set aside, and `exists` is False.
    """
    with path(sha256).open("rb") as file:
        verify_open(file.fileno(), sha256)


def verify_open(descriptor: int, sha256: str) -> None:
    """The same for a blob that the caller has open."""
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
    """Why the bytes of a file are not there, and what to do: the rest of a sentence that begins with 'The
    bytes of NAME'."""
    if (root() / _DAMAGED / sha256).exists():
        return (
            "were damaged on the hub's disk and are set aside; upload the file again, or restore it "
            "from a backup"
        )
    return "are missing on the hub; restore its data folder from a backup"


def part_path() -> Path:
    """A new name below DATA_DIR/blobs that no request can know, for a file that is to become a blob."""
    return _made("partial") / secrets.token_hex(16)


def _name(part: Path, sha256: str) -> None:
    """Link `part` to the blob's name unless that is taken by an intact file, then remove `part`."""
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
    """Raises FileExistsError and leaves the target alone, whatever it is."""
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
    file, aside = path(sha256), _made(_DAMAGED) / sha256
    with suppress(FileNotFoundError):
        if file.stat().st_ino == facts.st_ino:
            file.replace(aside)
    verification.forget(sha256)
    log.error(
        "The stored file %s is damaged: its content no longer has the SHA-256 that is its name. It was "
        "moved to %s. "
        "Check the disk, and restore the file from a backup or have it uploaded again.",
        file,
        aside,
    )


def set_time(file: Path | int) -> float:
    """Set a file's time to now, to the nanosecond, and return it: the kernel's own clock for files may lag by
    milliseconds."""
    now = time.time_ns()
    os.utime(file, ns=(now, now))
    return os.stat(file).st_mtime  # noqa: PTH116 - of a descriptor, too


def _made(name: str) -> Path:
    # Each by itself: mkdir's mode holds only for the last folder of parents=True.
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = root() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _kept_at(file: Path) -> float:
    """Unix seconds; of what is gone, later than any moment."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def root() -> Path:
    """The folder of all blobs."""
    return Path(settings.DATA_DIR) / "blobs"
