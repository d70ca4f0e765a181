"""Which line of a log a byte is in. Counted once per process and block: what is stored of a log never
changes."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

BLOCK_BYTES = 8 * 2**20
PIECE_BYTES = 2**20
MOST_LOGS = 1024
Key = tuple[str, int, str]

_lock = threading.Lock()
_counts: OrderedDict[Key, list[int]] = OrderedDict()
"""Newlines before each block's end, from the first block on."""


def number(key: Key, descriptor: int, offset: int) -> int:
    """The number, from 1, of the line that begins at `offset`. `key`: run, attempt, log name."""
    with _lock:
        counts = _counts.setdefault(key, [])
        _counts.move_to_end(key)
        while len(_counts) > MOST_LOGS:
            _counts.popitem(last=False)
    blocks = offset // BLOCK_BYTES
    while (known := len(counts)) < blocks:
        through = (counts[-1] if counts else 0) + _newlines(descriptor, known * BLOCK_BYTES, BLOCK_BYTES)
        with _lock:
            if len(counts) == known:
                counts.append(through)
    before = counts[blocks - 1] if blocks else 0
    return 1 + before + _newlines(descriptor, blocks * BLOCK_BYTES, offset - blocks * BLOCK_BYTES)


def _newlines(descriptor: int, begin: int, length: int) -> int:
    count, end = 0, begin + length
    while begin < end and (piece := os.pread(descriptor, min(PIECE_BYTES, end - begin), begin)):
        count += piece.count(b"\n")
        begin += len(piece)
    return count
