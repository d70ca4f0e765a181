"""Parses untrusted JSON files with bounded memory and time: small ones directly, large ones in a child
process."""

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
from tracking.artifacts.previews.documents import JsonPreview, NotPreviewable
from tracking.artifacts.previews.tables import PreviewTable

# Larger files are shown as plain text, and are not drawn.
MAX_JSON_BYTES = 8 * 2**20
# Parsed JSON needs up to 75 times the memory of its text, which is 10 MiB here.
MAX_INLINE_BYTES = 128 * 1024
MAX_MEMORY_BYTES = 256 * 2**20
MAX_CPU_S = 2
MAX_WALL_S = 15
MAX_PROCESSES = 2
# The child does not get the hub's environment, which may hold secrets.
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}

_slots = threading.BoundedSemaphore(MAX_PROCESSES)


class PreviewBusy(Exception):
    """All parser slots are in use, or parsing takes too long."""


def isolated_preview_json(path: Path, size: int) -> JsonPreview:
    """Returns the preview of the JSON file at `path`. Raises NotPreviewable or PreviewBusy."""
    if size <= MAX_INLINE_BYTES:
        return documents.preview_json(path.read_bytes())
    fields = json.loads(_parse_in_child(path, size, child.DOCUMENT))
    table = fields.pop("table")
    return JsonPreview(**fields, table=PreviewTable(**table) if table else None)


def isolated_figure_json(path: Path, size: int) -> bytes:
    """Returns the plotly figure at `path` as JSON for a page. Raises NotPreviewable or PreviewBusy."""
    return (
        documents.figure_json(path.read_bytes())
        if size <= MAX_INLINE_BYTES
        else _parse_in_child(path, size, child.FIGURE)
    )


def _parse_in_child(path: Path, size: int, mode: str) -> bytes:
    if size > MAX_JSON_BYTES:
        raise NotPreviewable(f"it is larger than {MAX_JSON_BYTES // 2**20} MiB")
    # `-m` finds the module in the working directory, because the environment contains no PYTHONPATH.
    command = [
        sys.executable,
        "-m",
        "tracking.artifacts.previews.child",
        mode,
        str(MAX_MEMORY_BYTES),
        str(MAX_CPU_S),
    ]
    with _slot(), path.open("rb") as file:
        try:
            process = subprocess.run(
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
            raise PreviewBusy("parsing it takes too long at the moment") from error
    status, _, output = process.stdout.partition(b"\n")
    if status == b"ok":
        return output
    # A child that exceeds a limit is killed and writes nothing.
    raise NotPreviewable(
        output.decode(errors="replace")
        if status == b"no"
        else "parsing it takes more time or memory than is allowed"
    )


@contextmanager
def _slot() -> Iterator[None]:
    if not _slots.acquire(timeout=MAX_WALL_S):
        raise PreviewBusy("other files are being parsed")
    try:
        yield
    finally:
        _slots.release()
