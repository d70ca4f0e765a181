"""Log files of runs: DATA_DIR/runs/<run>/<attempt>/logs/<name>, written at offsets, read by range.

A stored file is a prefix of the node's file, byte for byte; its own length is the next wanted offset.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from trainhub_launch.eventfiles import is_event_file

RUN_ID = re.compile(r"[0-9a-f]{32}\Z")
MAX_NAME_BYTES = 500
MAX_DEPTH = 16
SIZES = "sizes.json"


class BadName(ValueError):
    """Not a name that a log may have."""


class Hole(ValueError):
    """The bytes begin after the end of what is stored; `wanted` is the offset to send from."""

    def __init__(self, wanted: int) -> None:
        super().__init__(f"the next wanted byte is {wanted}")
        self.wanted = wanted


def folder(run_id: str, attempt: int | None = None) -> Path:
    """Where everything that the hub keeps of a run (or of one attempt) lies."""
    if not RUN_ID.match(run_id):
        raise BadName(f"{run_id!r} is not a run's id")
    root = Path(settings.DATA_DIR) / "runs" / run_id
    return root if attempt is None else root / str(int(attempt))


def path(run_id: str, attempt: int, name: str) -> Path:
    """The file of a log; raises BadName for anything that could lead elsewhere."""
    check(name)
    return folder(run_id, attempt) / "logs" / name


def check(name: str) -> None:
    parts = name.split("/")
    if not name or len(os.fsencode(name)) > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        raise BadName(f"a log's name has 1 to {MAX_NAME_BYTES} bytes and at most {MAX_DEPTH} parts")
    for part in parts:
        if part in ("", ".", "..") or "\\" in part or not part.isprintable() or len(os.fsencode(part)) > 255:
            raise BadName(f"{name!r} is not a log's name")
    if len(parts) > 1 and not (
        parts[0] == "logs" or re.fullmatch(r"node_\d+", parts[0]) or _is_event_file_of_outputs(name)
    ):
        raise BadName(f"{name!r} is not below logs/")


def _is_event_file_of_outputs(name: str) -> bool:
    return name.startswith("outputs/") and is_event_file(name)


def names(run_id: str, attempt: int) -> dict[str, int]:
    """Every log with its stored size, in the order of names; without event files, which nobody reads as
    text."""
    return {name: size for name, size in _stored(run_id, attempt).items() if not is_event_file(name)}


def event_files(run_id: str, attempt: int) -> dict[str, int]:
    """TensorBoard's event files, which come like logs, with their stored sizes."""
    return {name: size for name, size in _stored(run_id, attempt).items() if is_event_file(name)}


def _stored(run_id: str, attempt: int) -> dict[str, int]:
    root = folder(run_id, attempt) / "logs"
    found: dict[str, int] = {}
    for parent, _, files in os.walk(root):
        for file in files:
            full = Path(parent) / file
            found[full.relative_to(root).as_posix()] = full.stat().st_size
    return dict(sorted(found.items()))


def size(run_id: str, attempt: int, name: str) -> int:
    """Stored bytes; 0 for a log of which nothing has come."""
    try:
        return path(run_id, attempt, name).stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def read(run_id: str, attempt: int, name: str, offset: int, limit: int) -> bytes:
    """At most `limit` bytes from `offset`; empty beyond the end."""
    try:
        with path(run_id, attempt, name).open("rb") as file:
            return os.pread(file.fileno(), max(0, limit), max(0, offset))
    except (FileNotFoundError, NotADirectoryError):
        return b""


def append(run_id: str, attempt: int, name: str, offset: int, data: bytes) -> int:
    """Write what is new of `data` at its offset; returns the stored length after. Raises Hole."""
    target = path(run_id, attempt, name)
    try:
        descriptor = _open(target)
    except FileNotFoundError:
        make_folders(target.parent)
        descriptor = _open(target)
    try:
        stored = os.fstat(descriptor).st_size
        if offset > stored:
            raise Hole(stored)
        rest = memoryview(data)[stored - offset :]
        while rest:
            written = os.pwrite(descriptor, rest, stored)
            rest = rest[written:]
            stored += written
        return stored
    finally:
        os.close(descriptor)


def seal(run_id: str, attempt: int, sizes: Mapping[str, int]) -> None:
    """Note the final sizes that a node told; a log is complete once it is stored to its final size."""
    known = _sizes(run_id, attempt)
    if all(known.get(name) == value for name, value in sizes.items()):
        return
    _write_sizes(run_id, attempt, known | dict(sizes))


def close(run_id: str, attempt: int) -> None:
    """Nothing more is to come (a lost node, an attempt that never started): what is stored is all."""
    _write_sizes(run_id, attempt, {"": 1})


def complete(run_id: str, attempt: int, name: str) -> bool:
    """Whether every byte that the log will ever have is stored."""
    sizes = _sizes(run_id, attempt)
    return "" in sizes or (name in sizes and size(run_id, attempt, name) >= sizes[name])


def whole(run_id: str, attempt: int, sizes: Mapping[str, int]) -> bool:
    """Whether all these logs are stored to these sizes."""
    return all(size(run_id, attempt, name) >= value for name, value in sizes.items())


def stored_bytes(run_id: str) -> int:
    """Of all the run's logs, of every attempt."""
    return sum(
        (Path(parent) / file).stat().st_size for parent, _, files in os.walk(folder(run_id)) for file in files
    )


def remove(run_id: str) -> None:
    """Everything that the hub keeps of this run in files."""
    root = folder(run_id)
    if root.exists():
        shutil.rmtree(root)


def make_folders(target: Path) -> None:
    """A folder of a run and those above it, for the hub alone."""
    # mkdir's mode holds only for the last folder of parents=True, so each is made by itself.
    missing = []
    while not target.exists():
        missing.append(target)
        target = target.parent
    for item in reversed(missing):
        item.mkdir(mode=0o700, exist_ok=True)


def _open(target: Path) -> int:
    return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _sizes(run_id: str, attempt: int) -> dict[str, int]:
    try:
        return dict(json.loads((folder(run_id, attempt) / SIZES).read_text()))
    except FileNotFoundError:
        return {}


def _write_sizes(run_id: str, attempt: int, sizes: Mapping[str, int]) -> None:
    target = folder(run_id, attempt) / SIZES
    make_folders(target.parent)
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".sizes")
    with os.fdopen(descriptor, "w") as file:
        json.dump(dict(sizes), file)
    Path(aside).replace(target)
