"""How far a download or an upload has come, in a line of the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainhub_cli.formats import format_size
from trainhub_cli.printing import clean

PAUSE_S = 0.5


@contextmanager
def show_progress(title: str) -> Iterator[Callable[[int], None]]:
    """Yields what is called with the length of each piece. Nothing is shown if standard error is no terminal,
    or for half a second."""
    total, last, start = 0, time.monotonic(), time.monotonic()
    is_visible = False

    def on_bytes(length: int) -> None:
        nonlocal total, last, is_visible
        total += length
        if sys.stderr.isatty() and time.monotonic() - last >= PAUSE_S:
            last, is_visible = time.monotonic(), True
            rate = format_size(total / (last - start))
            sys.stderr.write(f"\r\x1b[K{clean(title)}: {format_size(total)}, {rate}/s")
            sys.stderr.flush()

    try:
        yield on_bytes
    finally:
        if is_visible:
            sys.stderr.write("\r\x1b[K")
