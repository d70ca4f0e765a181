"""Keeps a hub from running while its database is moved, and from being started on the old one afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from trainhub import installation
from trainhub.database_move.errors import MoveError
from trainhub.up import preflight
from trainhub.up.console import Stop


@contextmanager
def stopped_hub(source: Path) -> Iterator[None]:
    """Locks the data folder, if the source is its database. Raises MoveError if a hub runs on it."""
    if source.resolve().parent != installation.DATA_DIR.resolve() or not _run_folder().is_dir():
        yield
        return
    try:
        descriptor = preflight.lock()
    except Stop as reason:
        raise MoveError(f"The hub has to be stopped while its database is moved. {reason}") from reason
    try:
        yield
    finally:
        os.close(descriptor)


def mark_source(source: Path, target: str) -> Path | None:
    """Writes the mark with which `up` refuses to start on the old database; returns it, or None if the
    source is not in the data folder."""
    if source.resolve().parent != installation.DATA_DIR.resolve():
        return None
    mark = installation.MOVE_MARK
    mark.write_text(f"{target} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    return mark


def _run_folder() -> Path:
    return installation.DATA_DIR / "run"
