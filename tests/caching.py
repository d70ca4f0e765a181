"""What is costly to make, kept between sessions."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("TRAINHUB_TEST_CACHE") or Path.home() / ".cache" / "trainhub-tests").expanduser()
"""Environments, frameworks, a migrated database."""


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Of several test processes one at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
