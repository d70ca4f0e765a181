"""The division of a list of files into blocks."""

from __future__ import annotations

import pytest

from trainhub_node.data.peers.blocks import BLOCK_BYTES, MAX_BLOCK_FILES, DataBlock, divide, segments

KB = 1000


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [0] * 2500,
        [50 * KB] * 1000,
        [BLOCK_BYTES],
        [BLOCK_BYTES + 1],
        [1, BLOCK_BYTES, 1],
        [3 * BLOCK_BYTES, 5, 7, 2 * BLOCK_BYTES + 1, 0],
    ],
)
def test_every_byte_is_in_one_block(sizes: list[int]) -> None:
    blocks = list(divide(sizes))
    parts = [part for block in blocks for part in segments(block, sizes)]
    assert sum(part.end - part.start for part in parts) == sum(sizes)
    assert {part.file for part in parts} == set(range(len(sizes)))
    assert len(set(parts)) == len(parts)
    assert all(block.length <= BLOCK_BYTES and block.files <= MAX_BLOCK_FILES for block in blocks)
    for block in blocks:
        assert block.length == sum(part.end - part.start for part in segments(block, sizes))


def test_small_files_are_together_and_large_ones_in_pieces() -> None:
    assert list(divide([10, 20, BLOCK_BYTES + 5, 30])) == [
        DataBlock(0, 2, 0, 30),
        DataBlock(2, 1, 0, BLOCK_BYTES),
        DataBlock(2, 1, BLOCK_BYTES, 5),
        DataBlock(3, 1, 0, 30),
    ]
