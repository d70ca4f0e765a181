"""Points of curves, in memory and as bytes (little-endian).

A slice has the points of one request, of many curves: version (u8), is deflated (u8), number of keys (u32),
length of the names (u32), the names separated by NUL, the number of points of each key (u32 each); then the
steps (i64), times (i64) and values (f64) of all points, deflated if they are large.

A block has points of one curve: version (u8), number of points (u32), lengths of three segments (u32 each),
and the deflated segments: steps and times as differences, values as f64 with transposed bytes. A reader
inflates only the segments that it needs.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workspaces.set_aside import UnreadableError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

VERSION = 1
MAX_BLOCK_POINTS = 4096
# Little-endian: version, whether the numbers are deflated, number of curves, length of the names. Then the
# names separated by NUL, the counts as 32-bit numbers, and the columns step, ms and value one after the
# other.
_SLICE = struct.Struct("<BBII")
# Little-endian: version, number of points, and the lengths of three deflated segments: differences of the
# steps, differences of the times, and the values.
_BLOCK = struct.Struct("<BIIII")
_POINT_BYTES = 24
# Deflating less than this saves nothing.
_MIN_DEFLATE_BYTES = 1024
_FAST = 1


class PointsError(UnreadableError):
    """Stored bytes are not a slice or block of a known version."""


class Point(NamedTuple):
    """One logged number. `step` and `ms` (Unix milliseconds) are 64-bit; `value` may be NaN or infinite."""

    key: str
    value: float
    step: int
    ms: int


@dataclass(frozen=True)
class Points:
    """Points of one curve: three arrays of the same length."""

    step: IntArray
    ms: IntArray
    value: FloatArray

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: slice | npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Points:
        return Points(self.step[index], self.ms[index], self.value[index])


NO_POINTS = Points(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


def group_by_key(points: Iterable[Point]) -> dict[str, Points]:
    """Groups the points of a request by key, in the order of arrival."""
    by_key: dict[str, list[Point]] = {}
    for point in points:
        by_key.setdefault(point.key, []).append(point)
    # One array of all points with views of it: creating an array costs as much as hundreds of numbers.
    ordered = [point for curve in by_key.values() for point in curve]
    steps = np.array([point.step for point in ordered], np.int64)
    times = np.array([point.ms for point in ordered], np.int64)
    values = np.array([point.value for point in ordered], np.float64)
    ends = accumulate(map(len, by_key.values()))
    spans = (
        (key, slice(end - len(curve), end)) for (key, curve), end in zip(by_key.items(), ends, strict=True)
    )
    return {key: Points(steps[span], times[span], values[span]) for key, span in spans}


def concatenate(parts: Iterable[Points]) -> Points:
    """Returns all points in one object, in the order of `parts`."""
    non_empty = [part for part in parts if len(part)]
    if len(non_empty) < 2:
        return non_empty[0] if non_empty else NO_POINTS
    return Points(
        *(
            np.concatenate(column)
            for column in zip(*((p.step, p.ms, p.value) for p in non_empty), strict=True)
        )
    )


def slice_bytes(curves: Mapping[str, Points]) -> bytes:
    names = "\0".join(curves).encode()
    counts = np.array([len(points) for points in curves.values()], "<u4").tobytes()
    columns = concatenate(curves.values())
    numbers = b"".join(
        column.astype(kind, copy=False).tobytes()
        for column, kind in ((columns.step, "<i8"), (columns.ms, "<i8"), (columns.value, "<f8"))
    )
    is_deflated = len(numbers) >= _MIN_DEFLATE_BYTES
    head = _SLICE.pack(VERSION, is_deflated, len(curves), len(names))
    return b"".join((head, names, counts, zlib.compress(numbers, _FAST) if is_deflated else numbers))


def read_slice(data: bytes, key_filter: str | None = None) -> dict[str, Points]:
    """Returns the points of a slice by key, or only of one key. Raises PointsError."""
    try:
        version, is_deflated, count, names_length = _SLICE.unpack_from(data)
        if version != VERSION:
            raise PointsError(f"a slice of version {version} cannot be read", version)
        at = _SLICE.size + names_length
        keys = data[_SLICE.size : at].decode().split("\0")
        if key_filter is not None and key_filter not in keys:
            return {}
        counts = np.frombuffer(data, "<u4", count, at).tolist()
        # The columns have the same length, so no offsets are stored.
        numbers = data[at + 4 * count :]
        numbers = zlib.decompress(numbers) if is_deflated else numbers
        total = sum(counts)
        if len(numbers) != _POINT_BYTES * total or len(keys) != count:
            raise PointsError(f"a slice of {len(data)} bytes does not hold {total} points of {count} curves")
        steps, times = np.frombuffer(numbers, "<i8", 2 * total).reshape(2, total)
        values = np.frombuffer(numbers, "<f8", total, 16 * total)
    except (struct.error, zlib.error, ValueError, IndexError) as error:
        raise PointsError(f"a slice of {len(data)} bytes cannot be read: {error}") from error
    columns = Points(steps, times, values)
    ends = accumulate(counts)
    return {
        key: columns[end - count : end]
        for key, count, end in zip(keys, counts, ends, strict=True)
        if key_filter in (None, key)
    }


def block_bytes(points: Points) -> bytes:
    segments = [
        # Steps and times grow evenly, so their differences are mostly the same number, which deflates to
        # almost nothing.
        zlib.compress(np.diff(points.step, prepend=0).astype("<i8", copy=False).tobytes(), _FAST),
        zlib.compress(np.diff(points.ms, prepend=0).astype("<i8", copy=False).tobytes(), _FAST),
        zlib.compress(_transpose(points.value), _FAST),
    ]
    return b"".join((_BLOCK.pack(VERSION, len(points), *map(len, segments)), *segments))


def read_block(data: bytes, *, ms: bool = True) -> Points:
    """Returns the points of a block; with `ms=False` their times are zeros. Raises PointsError."""
    try:
        version, count, *lengths = _BLOCK.unpack_from(data)
        if version != VERSION:
            raise PointsError(f"a block of version {version} cannot be read", version)
        first = _BLOCK.size
        second = first + lengths[0]
        third = second + lengths[1]
        steps = np.cumsum(np.frombuffer(zlib.decompress(data[first:second]), "<i8"))
        times = (
            np.cumsum(np.frombuffer(zlib.decompress(data[second:third]), "<i8"))
            if ms
            else np.zeros(count, np.int64)
        )
        values = _untranspose(zlib.decompress(data[third : third + lengths[2]]))
    except (struct.error, zlib.error, ValueError) as error:
        raise PointsError(f"a block of {len(data)} bytes cannot be read: {error}") from error
    if not len(steps) == len(times) == len(values) == count:
        raise PointsError(f"a block of {len(data)} bytes does not hold {count} points")
    return Points(steps, times, values)


def _transpose(values: FloatArray) -> bytes:
    # The bytes of the same significance next to each other: signs and exponents repeat and deflate well,
    # mantissas do not.
    return np.ascontiguousarray(values.astype("<f8", copy=False).view(np.uint8).reshape(-1, 8).T).tobytes()


def _untranspose(data: bytes) -> FloatArray:
    return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(8, -1).T).view("<f8").reshape(-1)
