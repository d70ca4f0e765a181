"""JSON files of strangers, parsed with bounded memory and time: small ones at once, large ones in a process
of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tracking.artifacts.previews import child, documents
from tracking.artifacts.previews.documents import Document, NotShown
from tracking.artifacts.previews.tables import Table

MAX_JSON_BYTES = 8 * 2**20
"""Larger files are shown as plain text, and are not drawn."""
MAX_INLINE_BYTES = 128 * 1024
"""Parsed JSON takes up to 75 times the memory of its text: 10 MiB."""
MAX_MEMORY_BYTES = 256 * 2**20
MAX_CPU_S = 2
MAX_WALL_S = 15
MAX_AT_ONCE = 2
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
"""The process gets nothing of the hub's environment, which may hold secrets."""

_slots = threading.BoundedSemaphore(MAX_AT_ONCE)


class Busy(Exception):
    """As many files are being parsed as may be at once, for longer than one should wait."""


def document(path: Path, size: int) -> Document:
    """What a page shows of the JSON file at `path`. Raises NotShown or Busy."""
    if size <= MAX_INLINE_BYTES:
        return documents.document(path.read_bytes())
    found = json.loads(_parsed_apart(path, size, child.DOCUMENT))
    table = found.pop("table")
    return Document(**found, table=Table(**table) if table else None)


def figure(path: Path, size: int) -> bytes:
    """The plotly figure at `path` as JSON for a page. Raises NotShown or Busy."""
    return (
        documents.figure(path.read_bytes())
        if size <= MAX_INLINE_BYTES
        else _parsed_apart(path, size, child.FIGURE)
    )


def _parsed_apart(path: Path, size: int, what: str) -> bytes:
    if size > MAX_JSON_BYTES:
        raise NotShown(f"it is larger than {MAX_JSON_BYTES // 2**20} MiB")
    command = [
        sys.executable,
        "-m",
        "tracking.artifacts.previews.child",
        what,
        str(MAX_MEMORY_BYTES),
        str(MAX_CPU_S),
    ]
    with _slot(), path.open("rb") as file:
        try:
            done = subprocess.run(
                command,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
                cwd=settings.BASE_DIR,
                env=ENVIRONMENT,
                timeout=MAX_WALL_S,
            )
        except subprocess.TimeoutExpired as error:
            raise Busy("parsing it takes too long at the moment") from error
    word, _, answer = done.stdout.partition(b"\n")
    if word == b"ok":
        return answer
    raise NotShown(
        answer.decode(errors="replace")
        if word == b"no"
        else "parsing it takes more time or memory than is allowed"
    )


@contextmanager
def _slot() -> Iterator[None]:
    if not _slots.acquire(timeout=MAX_WALL_S):
        raise Busy("other files are being parsed")
    try:
        yield
    finally:
        _slots.release()
