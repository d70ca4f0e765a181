"""The binary format of chunks: the values of one subject over a span, stored metric by metric, so that a
reader decompresses only the metrics that it needs.

A chunk consists of a head (version, step, points, number of metrics, bytes of their names), the names
(deflated), the length of each metric's segment, and the segments. A segment (deflated) holds means and maxima
as float32 with transposed bytes, which compress to two thirds of the size of plain ones. For steps longer
than a bucket it also holds the number of buckets of each point. NaN = unknown. The index of a point is
(time - start) / step."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from clusters.telemetry.slice_codec import Numbers, PackingError
from trainhub_launch.metrics import GPU_METRICS, HOST_METRICS
from trainhub_launch.telemetry import BUCKET_S

Counts = npt.NDArray[np.uint16]

# Step in seconds -> points of a stored chunk: an hour, three hours and two days (docs/adr/0007).
POINTS = {BUCKET_S: 360, 60: 180, 600: 288}
CHUNK_VERSION = 1
# Little-endian without padding: version (1 byte), step in seconds (4), points (4), number of metrics (2),
# length of the deflated names (2).
_HEAD = struct.Struct("<BIIHH")
_LENGTH_BYTES = 4
# Mean and maximum of a point, each a float32.
_NUMBER_BYTES = 8
_COUNT_BYTES = 2
# Level 6 saves 2 % of the bytes and takes 20 to 90 % more time (docs/adr/0007).
_COMPRESSION_LEVEL = 1
# Estimates for `likely_bytes_needed`, and no limits of the format.
_MAX_HEAD_BYTES, _MAX_SEGMENT_BYTES = 1024, 2048
_ORDER = {metric.key: place for table in (HOST_METRICS, GPU_METRICS) for place, metric in enumerate(table)}


@dataclass(frozen=True)
class Chunk:
    """`mean`, `max` and `count` are matrices [metric][point]; `count` is the number of buckets in a mean."""

    start: int
    step_s: int
    metrics: tuple[str, ...]
    mean: Numbers
    max: Numbers
    count: Counts

    @property
    def points(self) -> int:
        return int(self.mean.shape[1])

    @property
    def end(self) -> int:
        return self.start + self.points * self.step_s


def span_s(step_s: int) -> int:
    """Returns the seconds that a stored chunk of this step covers; chunks begin at multiples of it."""
    return POINTS[step_s] * step_s


def empty_chunk(start: int, step_s: int, points: int, metrics: Sequence[str]) -> Chunk:
    """Returns a chunk without values in writable arrays."""
    shape = (len(metrics), points)
    unknown = np.full((2, *shape), np.nan, np.float32)
    return Chunk(start, step_s, tuple(metrics), unknown[0], unknown[1], np.zeros(shape, np.uint16))


def chunk_bytes(chunk: Chunk) -> bytes:
    """Returns the encoded chunk without empty metrics. The metrics that are read most come first, so that
    readers can fetch a prefix."""
    rows = [row for row in range(len(chunk.metrics)) if chunk.count[row].any()]
    # Metrics that this version does not know, from a newer agent, come last.
    rows.sort(key=lambda row: _ORDER.get(chunk.metrics[row], len(_ORDER)))
    names = _packed_names(tuple(chunk.metrics[row] for row in rows))
    segments = [_segment(chunk, row) for row in rows]
    head = _HEAD.pack(CHUNK_VERSION, chunk.step_s, chunk.points, len(rows), len(names))
    lengths = struct.pack(f"<{len(segments)}I", *map(len, segments))
    return b"".join((head, names, lengths, *segments))


@dataclass(frozen=True)
class PackedChunk:
    """A stored chunk with compressed segments. `ends`: offsets at which the segments begin, and the end of
    the last one."""

    data: bytes
    start: int
    step_s: int
    points: int
    metrics: tuple[str, ...]
    ends: tuple[int, ...]


def open_chunk(data: bytes, start: int) -> PackedChunk:
    """Returns the chunk with its head parsed. Raises PackingError."""
    if not data:
        raise PackingError("an empty chunk cannot be read")
    if data[0] != CHUNK_VERSION:
        raise PackingError(f"a chunk of version {data[0]} cannot be read", data[0])
    try:
        _, step_s, points, metric_count, names_length = _HEAD.unpack_from(data)
        at = _HEAD.size + names_length
        names = _names(data[_HEAD.size : at])[:metric_count]
        ends = tuple(
            accumulate(
                struct.unpack_from(f"<{metric_count}I", data, at), initial=at + metric_count * _LENGTH_BYTES
            )
        )
    except (struct.error, zlib.error) as error:
        raise PackingError(f"a chunk of {len(data)} bytes cannot be read: {error}") from error
    return PackedChunk(data, start, step_s, points, names, ends)


def read_chunk(data: bytes, start: int) -> Chunk:
    """Returns the chunk with all metrics decompressed. Raises PackingError."""
    packed = open_chunk(data, start)
    chunk = empty_chunk(start, packed.step_s, packed.points, packed.metrics)
    for row, metric in enumerate(packed.metrics):
        fill_row(chunk, row, packed, metric)
    return chunk


def fill_row(target: Chunk, row: int, packed: PackedChunk, metric: str) -> None:
    """Decompresses one metric into a row of a chunk of the same step, as far as they overlap. Raises
    PackingError."""
    if metric not in packed.metrics:
        return
    place, points = packed.metrics.index(metric), packed.points
    try:
        segment = zlib.decompress(packed.data[packed.ends[place] : packed.ends[place + 1]])
    except zlib.error as error:
        raise PackingError(f"a chunk's segment of {metric} cannot be read: {error}") from error
    numbers = _NUMBER_BYTES * points
    if len(segment) not in (numbers, numbers + _COUNT_BYTES * points) or packed.step_s != target.step_s:
        expected = f"{points} points in steps of {target.step_s} s"
        raise PackingError(f"a chunk's segment of {len(segment)} bytes does not hold {expected}")
    # The transposed bytes are four planes: the first bytes of all numbers, then the second ones, and so on.
    planes = np.frombuffer(segment, np.uint8, numbers).reshape(4, -1)
    mean, maxima = np.ascontiguousarray(planes.T).view("<f4").reshape(2, -1)
    shift = (packed.start - target.start) // target.step_s
    target_points = slice(max(0, shift), max(0, min(target.points, shift + points)))
    source_points = slice(target_points.start - shift, target_points.stop - shift)
    target.mean[row, target_points], target.max[row, target_points] = (
        mean[source_points],
        maxima[source_points],
    )
    count = np.frombuffer(segment, "<u2", offset=numbers) if len(segment) > numbers else ~np.isnan(mean)
    target.count[row, target_points] = count[source_points]


def bytes_needed(beginning: bytes, metric: str) -> int:
    """Returns how many bytes of the chunk are needed to read the metric, given its first bytes; 0 for a
    broken chunk."""
    try:
        packed = open_chunk(beginning, 0)
    except PackingError:
        return 0
    return packed.ends[packed.metrics.index(metric) + 1 if metric in packed.metrics else 0]


def likely_bytes_needed(metric: str) -> int:
    """Returns a length that `bytes_needed` rarely exceeds: readers of many chunks fetch this prefix of
    each."""
    return _MAX_HEAD_BYTES + _MAX_SEGMENT_BYTES * (_ORDER.get(metric, len(_ORDER)) + 1)


def _segment(chunk: Chunk, row: int) -> bytes:
    numbers = np.stack((chunk.mean[row], chunk.max[row])).astype("<f4", copy=False)
    transposed = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T).tobytes()
    counts = b"" if chunk.step_s == BUCKET_S else chunk.count[row].astype("<u2", copy=False).tobytes()
    return zlib.compress(transposed + counts, _COMPRESSION_LEVEL)


@lru_cache(maxsize=1024)
def _packed_names(metrics: tuple[str, ...]) -> bytes:
    return zlib.compress("\n".join(metrics).encode())


@lru_cache(maxsize=1024)
def _names(packed: bytes) -> tuple[str, ...]:
    return tuple(zlib.decompress(packed).decode().split("\n"))
