"""Log files of runs: DATA_DIR/runs/<run>/<attempt>/logs/<name>, written at offsets, read by range.

A stored file is a prefix of the node's file, byte for byte; its length is the next offset to send from.
`sizes.json` beside the logs of an attempt holds the final size of each log; the key "" means that no more
bytes will arrive for any log.

With BLOB_STORE the logs of attempts that ended some time ago lie among the stored files instead
(jobs.log_archive moves them): every function here that reads finds them there. An empty file `archived`
beside them says that the database has rows of such logs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from jobs.logs import archived_logs
from jobs.logs.archived_logs import LogPart
from jobs.logs.models import ArchivedLog
from trainhub_launch.eventfiles import is_event_file
from trainhub_launch.log_names import PACKAGES_FILE
from workspaces.object_store.rows import is_store_used

RUN_ID = re.compile(r"[0-9a-f]{32}\Z")
MAX_NAME_BYTES = 500
MAX_DEPTH = 16
SIZES = "sizes.json"
ARCHIVE_MARK = "archived"


class BadLogName(ValueError):
    """The name is not allowed for a log."""


class MissingLogBytes(ValueError):
    """The bytes begin after the end of the stored ones; `next_offset` is the offset to send from."""

    def __init__(self, next_offset: int) -> None:
        super().__init__(f"the next expected byte is {next_offset}")
        self.next_offset = next_offset


class LogArchived(ValueError):
    """The log has moved to the stored files: no more bytes belong to it."""


class LogFacts(NamedTuple):
    """`size`: in bytes; `written_ms`: when the last of them was stored (milliseconds since 1970)."""

    size: int
    written_ms: int


def run_folder(run_id: str, attempt: int | None = None) -> Path:
    """Returns the folder of all files that the hub stores for a run, or for one attempt of it."""
    if not RUN_ID.match(run_id):
        raise BadLogName(f"{run_id!r} is not a run's id")
    root = Path(settings.DATA_DIR) / "runs" / run_id
    return root if attempt is None else root / str(int(attempt))


def path(run_id: str, attempt: int, name: str) -> Path:
    """Returns the file of a log. Raises BadLogName for a name that could lead elsewhere."""
    check_name(name)
    return run_folder(run_id, attempt) / "logs" / name


def check_name(name: str) -> None:
    parts = name.split("/")
    if not name or len(os.fsencode(name)) > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        raise BadLogName(f"a log's name has 1 to {MAX_NAME_BYTES} bytes and at most {MAX_DEPTH} parts")
    for part in parts:
        if part in ("", ".", "..") or "\\" in part or not part.isprintable() or len(os.fsencode(part)) > 255:
            raise BadLogName(f"{name!r} is not a log's name")
    if len(parts) > 1 and not (
        parts[0] == "logs" or re.fullmatch(r"node_\d+", parts[0]) or _is_event_file_of_outputs(name)
    ):
        raise BadLogName(f"{name!r} is not below logs/")


def _is_event_file_of_outputs(name: str) -> bool:
    return name.startswith("outputs/") and is_event_file(name)


def log_sizes(run_id: str, attempt: int) -> dict[str, int]:
    """Returns every log's name and stored size by name, without what travels like a log and is none: the
    event files of TensorBoard, and the lists of installed packages."""
    archived = {name: row.size_bytes for name, row in archive_rows(run_id, attempt).items()}
    return dict(sorted((archived | local_log_sizes(run_id, attempt)).items()))


def local_log_sizes(run_id: str, attempt: int) -> dict[str, int]:
    """Returns the same of those logs that lie below DATA_DIR/runs."""
    return {
        name: size
        for name, size in _stored_sizes(run_id, attempt).items()
        if not (is_event_file(name) or name.endswith(PACKAGES_FILE))
    }


def archive_rows(run_id: str, attempt: int) -> Mapping[str, ArchivedLog]:
    """Returns the logs of an attempt that lie among the stored files, by name. Takes no query for an attempt
    that has none."""
    folder = run_folder(run_id, attempt)
    # The folder of an ended attempt may be lost with its disk: its logs are not.
    if (folder / ARCHIVE_MARK).exists() or (is_store_used() and not folder.exists()):
        return archived_logs.archived_logs(run_id, attempt)
    return {}


def mark_archived(run_id: str, attempt: int) -> None:
    """Lets readers look for the logs of an attempt among the stored files. Nothing if its folder is gone."""
    with contextlib.suppress(FileNotFoundError):
        (run_folder(run_id, attempt) / ARCHIVE_MARK).touch(0o600)


def event_file_sizes(run_id: str, attempt: int) -> dict[str, int]:
    """Returns TensorBoard's event files, which nodes send like logs, with their stored sizes."""
    return {name: size for name, size in _stored_sizes(run_id, attempt).items() if is_event_file(name)}


def _stored_sizes(run_id: str, attempt: int) -> dict[str, int]:
    root = run_folder(run_id, attempt) / "logs"
    sizes: dict[str, int] = {}
    for parent, _, files in os.walk(root):
        for file in files:
            full = Path(parent) / file
            sizes[full.relative_to(root).as_posix()] = full.stat().st_size
    return dict(sorted(sizes.items()))


def last_written(run_id: str, attempt: int) -> float:
    """Returns when the last bytes of any log or event file were stored (Unix seconds), 0 if none were."""
    last = 0.0
    for parent, _, files in os.walk(run_folder(run_id, attempt) / "logs"):
        for file in files:
            # A purge may remove it meanwhile.
            with contextlib.suppress(OSError):
                last = max(last, (Path(parent) / file).stat().st_mtime)
    return last


def size(run_id: str, attempt: int, name: str) -> int:
    """Returns the number of stored bytes; 0 for a log without any."""
    try:
        return path(run_id, attempt, name).stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        row = archive_rows(run_id, attempt).get(name)
        return 0 if row is None else row.size_bytes


def log_facts(run_id: str, attempt: int, name: str) -> LogFacts:
    """Raises FileNotFoundError for a log without stored bytes."""
    try:
        info = path(run_id, attempt, name).stat()
    except (FileNotFoundError, NotADirectoryError):
        if (row := archive_rows(run_id, attempt).get(name)) is None:
            raise
        return LogFacts(row.size_bytes, row.written_us // 1000)
    return LogFacts(info.st_size, info.st_mtime_ns // 1_000_000)


def read(run_id: str, attempt: int, name: str, offset: int, limit: int) -> bytes:
    """Returns at most `limit` bytes from `offset`; b"" beyond the end. Raises StoreUnavailable."""
    offset, limit = max(0, offset), max(0, limit)
    try:
        with path(run_id, attempt, name).open("rb") as file:
            return os.pread(file.fileno(), limit, offset)
    except (FileNotFoundError, NotADirectoryError):
        row = archive_rows(run_id, attempt).get(name)
        return b"" if row is None else archived_logs.read_parts([LogPart.from_range(row, offset, limit)])[0]


def open_log(run_id: str, attempt: int, name: str) -> int:
    """Returns a descriptor, to read, of a whole log, which the caller closes. Raises FileNotFoundError and
    StoreUnavailable."""
    try:
        return os.open(path(run_id, attempt, name), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        if (row := archive_rows(run_id, attempt).get(name)) is None:
            raise
        return archived_logs.open_copy(row)


def append(run_id: str, attempt: int, name: str, offset: int, data: bytes) -> int:
    """Writes the part of `data` that is not stored yet; returns the new stored length.

    Raises MissingLogBytes if the bytes before `offset` are not stored yet, and LogArchived: a new file would
    hide what has moved."""
    target = path(run_id, attempt, name)
    try:
        descriptor = _open(target)
    except FileNotFoundError:
        if name in archive_rows(run_id, attempt):
            raise LogArchived(name) from None
        make_folders(target.parent)
        descriptor = _open(target, os.O_CREAT)
    try:
        stored = os.fstat(descriptor).st_size
        if offset > stored:
            raise MissingLogBytes(stored)
        # A node repeats bytes whose acknowledgement was lost. Two requests may even write them at the same
        # time: both write the same bytes to the same place.
        rest = memoryview(data)[stored - offset :]
        while rest:
            # A write may store fewer bytes than requested, for example when the disk becomes full.
            written = os.pwrite(descriptor, rest, stored)
            rest = rest[written:]
            stored += written
        return stored
    finally:
        os.close(descriptor)


def seal(run_id: str, attempt: int, sizes: Mapping[str, int]) -> None:
    """Records the final sizes that a node reported; a log is complete once it is stored to its final size."""
    existing = _sizes(run_id, attempt)
    # A node reports the sizes repeatedly until the attempt is settled.
    if all(existing.get(name) == value for name, value in sizes.items()):
        return
    _write_sizes(run_id, attempt, existing | dict(sizes))


def close(run_id: str, attempt: int) -> None:
    """Marks all logs as complete: no more bytes will arrive (a lost node, an attempt that never started)."""
    _write_sizes(run_id, attempt, {"": 1})


def is_complete(run_id: str, attempt: int, name: str) -> bool:
    """Returns whether every byte that the log will ever have is stored."""
    sizes = _sizes(run_id, attempt)
    is_whole = "" in sizes or (name in sizes and size(run_id, attempt, name) >= sizes[name])
    return is_whole or name in archive_rows(run_id, attempt)


def complete_logs(run_id: str, attempt: int, stored: Mapping[str, int]) -> set[str]:
    """Returns the logs of which every byte is stored. `stored`: the name of each log -> its stored size."""
    sizes = _sizes(run_id, attempt)
    if "" in sizes:
        return set(stored)
    archived = archive_rows(run_id, attempt)
    return {name for name, size in stored.items() if size >= sizes.get(name, size + 1) or name in archived}


def are_stored(run_id: str, attempt: int, sizes: Mapping[str, int]) -> bool:
    """Returns whether all these logs are stored up to these sizes."""
    return all(size(run_id, attempt, name) >= value for name, value in sizes.items())


def stored_bytes(run_id: str) -> int:
    """Returns the total size of the run's files below DATA_DIR/runs, of all attempts."""
    return sum(
        (Path(parent) / file).stat().st_size
        for parent, _, files in os.walk(run_folder(run_id))
        for file in files
    )


def make_folders(target: Path) -> None:
    """Creates a folder of a run and its parents, readable by the hub's account only."""
    # With parents=True, mkdir applies its mode to the last folder only, so each one is created by itself.
    missing = []
    while not target.exists():
        missing.append(target)
        target = target.parent
    for item in reversed(missing):
        item.mkdir(mode=0o700, exist_ok=True)


def _open(target: Path, flags: int = 0) -> int:
    # No O_APPEND: it would make pwrite ignore its offset on Linux.
    return os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def _sizes(run_id: str, attempt: int) -> dict[str, int]:
    try:
        return dict(json.loads((run_folder(run_id, attempt) / SIZES).read_text()))
    except FileNotFoundError:
        return {}


def _write_sizes(run_id: str, attempt: int, sizes: Mapping[str, int]) -> None:
    target = run_folder(run_id, attempt) / SIZES
    make_folders(target.parent)
    # Replaced as a whole, so that readers never see half a file.
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".sizes")
    with os.fdopen(descriptor, "w") as file:
        json.dump(dict(sizes), file)
    Path(aside).replace(target)
