"""Line numbers for byte offsets in a log. Newlines are counted once per block and cached, because stored log
bytes never change."""

from __future__ import annotations

import os
import threading

from cachetools import LRUCache

BLOCK_BYTES = 8 * 2**20
PIECE_BYTES = 2**20
MAX_LOGS = 1024
Key = tuple[str, int, str]

_lock = threading.Lock()
# Log -> for each block the number of newlines from the log's start to the block's end.
_counts: LRUCache[Key, list[int]] = LRUCache(MAX_LOGS)


def line_number(key: Key, descriptor: int, offset: int) -> int:
    """Returns the number, counted from 1, of the line that begins at `offset`."""
    with _lock:
        counts = _counts.setdefault(key, [])
    blocks = offset // BLOCK_BYTES
    # The file is read without the lock. If two threads count the same block, the second result is dropped.
    while (block_count := len(counts)) < blocks:
        through = (counts[-1] if counts else 0) + _newlines(
            descriptor, block_count * BLOCK_BYTES, BLOCK_BYTES
        )
        with _lock:
            if len(counts) == block_count:
                counts.append(through)
    before = counts[blocks - 1] if blocks else 0
    return 1 + before + _newlines(descriptor, blocks * BLOCK_BYTES, offset - blocks * BLOCK_BYTES)


def _newlines(descriptor: int, begin: int, length: int) -> int:
    count, end = 0, begin + length
    while begin < end and (piece := os.pread(descriptor, min(PIECE_BYTES, end - begin), begin)):
        count += piece.count(b"\n")
        begin += len(piece)
    return count
