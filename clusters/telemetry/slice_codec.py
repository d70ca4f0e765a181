"""Slices as bytes: all that one node measured in one bucket.

A slice is `version`, then parts until the end: lengths, the names of its subjects and metrics (deflated), and
the numbers (deflated): float32 matrices [subject][metric] of means and of maxima. Subjects of one part have
the same metrics; the host has a part of its own. NaN = not known."""

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
_BETWEEN_NAMES, _BETWEEN_LISTS = "\n", "\0"
_FAST = 1


class PackingError(UnreadableError):
    """Stored bytes that are no slice or chunk of a version that this code knows."""


@dataclass(frozen=True)
class SlicePart:
    """Numbers of one bucket: `mean` and `max` are matrices [subject][metric]."""

    subjects: tuple[str, ...]
    metrics: tuple[str, ...]
    mean: Numbers
    max: Numbers


def slice_bytes(blocks: Iterable[Block], offset_s: float = 0.0) -> dict[int, bytes]:
    """Blocks of buckets as slices: {start in Unix seconds by the hub's clock, a multiple of BUCKET_S: bytes}.

    `offset_s`: the hub's clock less the node's. What blocks tell of the same bucket comes together in one
    slice."""
    found: dict[int, list[bytes]] = {}
    for block in blocks:
        names = _packed_names(block.subjects, block.metrics)
        row = ITEM_BYTES * len(block.subjects) * len(block.metrics)
        for step in range(block.steps):
            here = slice(step * row, (step + 1) * row)
            numbers = zlib.compress(block.values[here] + block.peaks[here], _FAST)
            parts = found.setdefault(
                bucket_of(block.start + step * BUCKET_S + offset_s), [bytes([SLICE_VERSION])]
            )
            parts += (_LENGTHS.pack(len(names), len(numbers)), names, numbers)
    return {start: b"".join(parts) for start, parts in found.items()}


def slice_parts(data: bytes) -> list[SlicePart]:
    """Raises PackingError."""
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
            mean, most = numbers.reshape(2, len(subjects), len(metrics))
            parts.append(SlicePart(subjects, metrics, mean, most))
    except (struct.error, zlib.error, ValueError) as error:
        raise PackingError(f"a slice of {len(data)} bytes cannot be read: {error}") from error
    return parts


def bucket_of(moment: float) -> int:
    """The start of the bucket that is nearest: a clock's offset must not put two buckets of a node into
    one."""
    return math.floor(moment / BUCKET_S + 0.5) * BUCKET_S


@lru_cache(maxsize=8192)
def _packed_names(subjects: tuple[str, ...], metrics: tuple[str, ...]) -> bytes:
    return zlib.compress(
        _BETWEEN_LISTS.join((_BETWEEN_NAMES.join(subjects), _BETWEEN_NAMES.join(metrics))).encode()
    )


@lru_cache(maxsize=8192)
def _names(packed: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    subjects, metrics = zlib.decompress(packed).decode().split(_BETWEEN_LISTS)
    return tuple(subjects.split(_BETWEEN_NAMES)), tuple(metrics.split(_BETWEEN_NAMES))
