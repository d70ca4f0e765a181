"""Small JSON files, written to a temporary name and renamed, so that no reader sees half of one.

The C half of `json` is used directly: the package itself imports `re`, which would delay a rank by 8 ms."""

from __future__ import annotations

import errno
import os
import stat
import time
from _json import encode_basestring_ascii, make_encoder, make_scanner
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
MAX_BYTES = 256 * 1024 * 1024
READ_BYTES = 1024 * 1024


class UnreadableRecord(Exception):
    """A record that its writer cannot have written. The message names the file."""


class _ScannerOptions:
    """The attributes of `json.JSONDecoder` that the C scanner reads."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _reject_value(value: object) -> None:
    raise TypeError(f"{type(value).__name__} has no place in a record")


_scan = make_scanner(_ScannerOptions())  # type: ignore[arg-type]  # any object with these attributes
_encode = make_encoder(None, _reject_value, encode_basestring_ascii, None, ": ", ", ", False, False, False)


def dumps(value: object) -> bytes:
    return "".join(_encode(value, 0)).encode("ascii")


def loads(data: bytes) -> object:
    return loads_text(data.decode("ascii"))


def loads_text(text: str) -> object:
    """Returns the value that JSON in `text` stands for. Raises ValueError."""
    try:
        return _scan(text, 0)[0]
    except (StopIteration, ValueError, RecursionError) as error:
        raise ValueError("not a record") from error


def write(path: str, value: object, *, patient: bool = True) -> None:
    """Writes `value` to `path` atomically. While the disk is full it waits, because a record must not be
    lost.

    Not `patient`: raises OSError instead, for a caller that must not block and will try again."""
    data = dumps(value)
    while True:
        try:
            _write_aside(path, data)
        except OSError as error:
            if error.errno not in DISK_FULL or not patient:
                raise
            time.sleep(1)
        else:
            return


def _write_aside(path: str, data: bytes) -> None:
    aside = f"{path}.{os.getpid()}.{get_ident()}"
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        os.rename(aside, path)
    except OSError:
        if os.path.lexists(aside):
            os.unlink(aside)
        raise


def read(path: str, max_bytes: int = MAX_BYTES) -> Any:
    """Returns the record at `path`, None without one. Raises UnreadableRecord.

    Some folders of records belong to the account that runs the training. So the type of the entry is
    checked before it is opened: opening a pipe or a device has effects, and a pipe has no end."""
    try:
        entry = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableRecord(f"{path} cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(entry)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableRecord(f"{path} is not a regular file")
        if status.st_size > max_bytes:
            raise UnreadableRecord(f"{path} has {status.st_size} bytes")
        return loads(_read_regular(entry, max_bytes))
    except (OSError, ValueError) as error:
        raise UnreadableRecord(f"{path} is not a record: {error}") from error
    finally:
        os.close(entry)


def _read_regular(entry: int, max_bytes: int) -> bytes:
    """Reads at most one byte more than `max_bytes`, even if the file grows meanwhile."""
    fd = os.open(f"/proc/self/fd/{entry}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        pieces: list[bytes] = []
        remaining = max_bytes + 1
        while remaining > 0 and (piece := os.read(fd, min(remaining, READ_BYTES))):
            pieces.append(piece)
            remaining -= len(piece)
    finally:
        os.close(fd)
    if remaining <= 0:
        raise ValueError(f"it has more than {max_bytes} bytes")
    return b"".join(pieces)
