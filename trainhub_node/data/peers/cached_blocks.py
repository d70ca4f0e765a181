"""Reads blocks of files that this node has, or whose pieces have arrived so far."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.part_file import recorded_pieces
from trainhub_node.data.peers.blocks import BLOCK_BYTES, DataBlock
from trainhub_node.data.peers.swarm_table import CachedFile, SwarmTable

CHUNK_BYTES = 256 * 1024


class NotHere(Exception):
    """A file of the block is not in the cache, or not this piece of it."""


def read_block(cache: DataCache, table: SwarmTable, block: DataBlock) -> Iterator[memoryview]:
    """Yields the bytes of a block. Raises NotHere, always before it yields anything of a piece."""
    if block.files == 1:
        yield from read_range(cache, table.file(block.first), block.start, block.length)
        return
    for number in range(block.first, block.first + block.files):
        file = table.file(number)
        yield from read_range(cache, file, 0, file.size)


def has_files(cache: DataCache, table: SwarmTable, block: DataBlock) -> bool:
    """Returns whether the cache has the files of a block with several."""
    return all(
        cache.has(table.file(number).identity) for number in range(block.first, block.first + block.files)
    )


def read_range(cache: DataCache, file: CachedFile, start: int, length: int) -> Iterator[memoryview]:
    """Yields `length` bytes of a file from `start` on. Raises NotHere."""
    descriptor = _open(cache, file, start // BLOCK_BYTES)
    try:
        end = start + length
        while start < end:
            chunk = os.pread(descriptor, min(CHUNK_BYTES, end - start), start)
            if not chunk:
                raise NotHere(file.identity)
            yield memoryview(chunk)
            start += len(chunk)
    finally:
        os.close(descriptor)


def _open(cache: DataCache, file: CachedFile, piece: int) -> int:
    count = -(-file.size // BLOCK_BYTES)
    with suppress(FileNotFoundError):
        return os.open(cache.name(file.identity), os.O_RDONLY | os.O_CLOEXEC)
    # A piece counts once its number is recorded: then it has been written, and compared with its hash.
    if count > 1 and piece in recorded_pieces(cache.pieces(file.identity), count):
        with suppress(FileNotFoundError):
            return os.open(cache.part(file.identity), os.O_RDONLY | os.O_CLOEXEC)
    # It may have been completed just now.
    try:
        return os.open(cache.name(file.identity), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise NotHere(file.identity) from error
