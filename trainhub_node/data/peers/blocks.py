"""The blocks in which nodes exchange the files of a list.

A block is a piece of a large file, or several small files whole. Every node divides the same list into the
same blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trainhub_node.data.part_file import PIECE_BYTES

BLOCK_BYTES = PIECE_BYTES
# Of a block with small files.
MAX_BLOCK_FILES = 1000


class Segment(NamedTuple):
    """The bytes from `start` to `end` of the file with this number in the list."""

    file: int
    start: int
    end: int


class DataBlock(NamedTuple):
    """`first` and `files`: the number of the first file, and how many there are; `start` and `length`: which
    of their bytes. `start` is 0 unless it is a piece of one file."""

    first: int
    files: int
    start: int
    length: int

    @property
    def piece(self) -> int:
        """The number of this piece of its file."""
        return self.start // BLOCK_BYTES


def divide(sizes: Iterable[int]) -> Iterator[DataBlock]:
    """Yields the blocks of the files with these sizes."""
    first = count = length = 0
    for number, size in enumerate(sizes):
        if count and (length + size > BLOCK_BYTES or count == MAX_BLOCK_FILES):
            yield DataBlock(first, count, 0, length)
            count = length = 0
        if size > BLOCK_BYTES:
            for start in range(0, size, BLOCK_BYTES):
                yield DataBlock(number, 1, start, min(BLOCK_BYTES, size - start))
            continue
        if not count:
            first = number
        count, length = count + 1, length + size
    if count:
        yield DataBlock(first, count, 0, length)


def segments(block: DataBlock, sizes: Sequence[int]) -> list[Segment]:
    if block.files == 1:
        return [Segment(block.first, block.start, block.start + block.length)]
    return [Segment(number, 0, sizes[number]) for number in range(block.first, block.first + block.files)]


def block_hash(digests: Iterable[bytes]) -> bytes:
    """Returns the hash of a block from the SHA-256 of each of its segments: these may arrive in any order,
    and that of a whole small file is its name in the cache, too."""
    return hashlib.sha256(b"".join(digests)).digest()
