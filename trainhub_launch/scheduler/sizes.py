"""Amounts of memory, as people write and read them."""

from __future__ import annotations

import re

UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})\Z")


def parse_bytes(text: str) -> int:
    """Returns the bytes that `text` names, like 64GiB, 1.5 TB or 1073741824. Raises ValueError."""
    match = _SIZE.match(text.strip())
    if match is None or match[2].upper() not in UNITS:
        raise ValueError(text)
    return int(float(match[1]) * UNITS[match[2].upper()])


def bytes_text(size: int) -> str:
    """Returns a size with the largest unit that keeps it above 1: "64 GiB", "1.5 MiB", "12 B"."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"
