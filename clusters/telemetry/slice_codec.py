"""The binary format of slices: all values of one node in one bucket.

A slice is a version byte followed by parts. A part consists of two lengths, the names of its subjects and
metrics (deflated), and the values (deflated): float32 matrices [subject][metric] of means and of maxima. All
subjects of a part have the same metrics; the host has its own part. NaN = unknown."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from trainhub_launch.telemetry import BUCKET_S, ITEM_BYTES, Block
from workspaces.set_aside import UnreadableError

Numbers = npt.NDArray[np.float32]

SLICE_VERSION = 1
_LENGTHS = struct.Struct("<II")
_NAME_SEPARATOR, _LIST_SEPARATOR = "\n", "\0"
_COMPRESSION_LEVEL = 1


class PackingError(UnreadableError):
    """Stored bytes that are not a slice or chunk of a supported version."""


@dataclass(frozen=True)
class SlicePart:
    """Values of one bucket: `mean` and `max` are matrices [subject][metric]."""

    subjects: tuple[str, ...]
    metrics: tuple[str, ...]
    mean: Numbers
    max: Numbers


def slice_bytes(blocks: Iterable[Block], offset_s: float = 0.0) -> dict[int, bytes]:
    """Returns start -> encoded slice; `start` is Unix seconds by the hub's clock and a multiple of BUCKET_S.

    `offset_s`: the hub's clock minus the node's. Blocks of the same bucket share a slice."""
    parts_by_start: dict[int, list[bytes]] = {}
    for block in blocks:
        names = _packed_names(block.subjects, block.metrics)
        row = ITEM_BYTES * len(block.subjects) * len(block.metrics)
        for step in range(block.steps):
            numbers_range = slice(step * row, (step + 1) * row)
            numbers = zlib.compress(
                block.values[numbers_range] + block.peaks[numbers_range], _COMPRESSION_LEVEL
            )
            parts = parts_by_start.setdefault(
                bucket_of(block.start + step * BUCKET_S + offset_s), [bytes([SLICE_VERSION])]
            )
            parts += (_LENGTHS.pack(len(names), len(numbers)), names, numbers)
    return {start: b"".join(parts) for start, parts in parts_by_start.items()}


def slice_parts(data: bytes) -> list[SlicePart]:
    """Returns the decoded parts of a slice. Raises PackingError."""
    if not data:
        raise PackingError("an empty slice cannot be read")
    if data[0] != SLICE_VERSION:
        raise PackingError(f"a slice of version {data[0]} cannot be read", data[0])
    parts, at = [], 1
    try:
        while at < len(data):
            names_length, numbers_length = _LENGTHS.unpack_from(data, at)
            at += _LENGTHS.size
            subjects, metrics = _names(data[at : at + names_length])
            at += names_length
            numbers = np.frombuffer(zlib.decompress(data[at : at + numbers_length]), np.dtype("<f4"))
            at += numbers_length
            mean, maxima = numbers.reshape(2, len(subjects), len(metrics))
            parts.append(SlicePart(subjects, metrics, mean, maxima))
    except (struct.error, zlib.error, ValueError) as error:
        raise PackingError(f"a slice of {len(data)} bytes cannot be read: {error}") from error
    return parts


def bucket_of(moment: float) -> int:
    """Returns the start of the nearest bucket. Rounding keeps two buckets of a node apart when its clock
    offset is not a multiple of a bucket."""
    return math.floor(moment / BUCKET_S + 0.5) * BUCKET_S


@lru_cache(maxsize=8192)
def _packed_names(subjects: tuple[str, ...], metrics: tuple[str, ...]) -> bytes:
    return zlib.compress(
        _LIST_SEPARATOR.join((_NAME_SEPARATOR.join(subjects), _NAME_SEPARATOR.join(metrics))).encode()
    )


@lru_cache(maxsize=8192)
def _names(packed: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    subjects, metrics = zlib.decompress(packed).decode().split(_LIST_SEPARATOR)
    return tuple(subjects.split(_NAME_SEPARATOR)), tuple(metrics.split(_NAME_SEPARATOR))
