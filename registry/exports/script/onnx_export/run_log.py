"""Writes lines to the log of the run."""

from __future__ import annotations

import sys


def write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    # Python buffers a pipe in blocks; the log is shown while the run lasts.
    sys.stdout.flush()


def format_size(count: int) -> str:
    """Returns a number of bytes with its unit, such as 1.5 MiB."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
