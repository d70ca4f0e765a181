"""Chunks as bytes: one subject's numbers over a span, metric by metric, so that a reader inflates only those
it draws.

A chunk is a head (`version`, step, points, numbers of metrics and of bytes of their names), the names
(deflated), the length of each metric's segment, and the segments. A segment (deflated) holds means and maxima
as float32 with their bytes transposed, which deflates to two thirds of what plain ones do; and, where a point
stands for several buckets, of how many. NaN = not known. A point's place in the chunk is its time: (time -
start) / step."""

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

POINTS = {BUCKET_S: 360, 60: 180, 600: 288}
"""Step in seconds -> points of one stored chunk: an hour, three hours and two days (docs/adr/0007)."""
CHUNK_VERSION = 1
_HEAD = struct.Struct("<BIIHH")
_LENGTH_BYTES = 4
_NUMBER_BYTES = 8
_COUNT_BYTES = 2
_FAST = 1
_LONGEST_HEAD, _LONGEST_SEGMENT = 1024, 2048
_ORDER = {metric.key: place for table in (HOST_METRICS, GPU_METRICS) for place, metric in enumerate(table)}


@dataclass(frozen=True)
class Chunk:
    """`mean`, `max` and `count` are matrices [metric][point]; `count` is how many buckets a mean stands
    for."""

    start: int
    step_s: int
    metrics: tuple[str, ...]
    mean: Numbers
    max: Numbers
    count: Counts

    @property
    def points(self) -> int:
        return self.mean.shape[1]

    @property
    def end(self) -> int:
        return self.start + self.points * self.step_s


def span_s(step_s: int) -> int:
    """Seconds that a stored chunk of this step covers; chunks begin at multiples of it."""
    return POINTS[step_s] * step_s


def empty_chunk(start: int, step_s: int, points: int, metrics: Sequence[str]) -> Chunk:
    """Nothing known yet, in arrays that may be written to."""
    shape = (len(metrics), points)
    unknown = np.full((2, *shape), np.nan, np.float32)
    return Chunk(start, step_s, tuple(metrics), unknown[0], unknown[1], np.zeros(shape, np.uint16))


def chunk_bytes(chunk: Chunk) -> bytes:
    """The metrics that are known at all, those first that are looked at most."""
    known = [row for row in range(len(chunk.metrics)) if chunk.count[row].any()]
    known.sort(key=lambda row: _ORDER.get(chunk.metrics[row], len(_ORDER)))
    names = _packed_names(tuple(chunk.metrics[row] for row in known))
    segments = [_segment(chunk, row) for row in known]
    head = _HEAD.pack(CHUNK_VERSION, chunk.step_s, chunk.points, len(known), len(names))
    lengths = struct.pack(f"<{len(segments)}I", *map(len, segments))
    return b"".join((head, names, lengths, *segments))


@dataclass(frozen=True)
class PackedChunk:
    """A stored chunk of which no segment is inflated yet. `ends`: where each metric's begins, and the last
    one ends."""

    data: bytes
    start: int
    step_s: int
    points: int
    metrics: tuple[str, ...]
    ends: tuple[int, ...]


def open_chunk(data: bytes, start: int) -> PackedChunk:
    """Raises PackingError."""
    if not data:
        raise PackingError("an empty chunk cannot be read")
    if data[0] != CHUNK_VERSION:
        raise PackingError(f"a chunk of version {data[0]} cannot be read", data[0])
    try:
        _, step_s, points, held, names_length = _HEAD.unpack_from(data)
        at = _HEAD.size + names_length
        names = _names(data[_HEAD.size : at])[:held]
        ends = tuple(accumulate(struct.unpack_from(f"<{held}I", data, at), initial=at + held * _LENGTH_BYTES))
    except (struct.error, zlib.error) as error:
        raise PackingError(f"a chunk of {len(data)} bytes cannot be read: {error}") from error
    return PackedChunk(data, start, step_s, points, names, ends)


def read_chunk(data: bytes, start: int) -> Chunk:
    """Raises PackingError."""
    packed = open_chunk(data, start)
    found = empty_chunk(start, packed.step_s, packed.points, packed.metrics)
    for row, metric in enumerate(packed.metrics):
        fill(found, row, packed, metric)
    return found


def fill(target: Chunk, row: int, packed: PackedChunk, metric: str) -> None:
    """Inflate one metric into a row of a chunk of the same step, as far as they overlap. Raises
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
        wanted = f"{points} points in steps of {target.step_s} s"
        raise PackingError(f"a chunk's segment of {len(segment)} bytes does not hold {wanted}")
    planes = np.frombuffer(segment, np.uint8, numbers).reshape(4, -1)
    mean, most = np.ascontiguousarray(planes.T).view("<f4").reshape(2, -1)
    shift = (packed.start - target.start) // target.step_s
    here = slice(max(0, shift), max(0, min(target.points, shift + points)))
    there = slice(here.start - shift, here.stop - shift)
    target.mean[row, here], target.max[row, here] = mean[there], most[there]
    count = np.frombuffer(segment, "<u2", offset=numbers) if len(segment) > numbers else ~np.isnan(mean)
    target.count[row, here] = count[there]


def bytes_needed(beginning: bytes, metric: str) -> int:
    """How many bytes of a chunk of which these are the first have to be there to read the metric; 0 where it
    is broken."""
    try:
        packed = open_chunk(beginning, 0)
    except PackingError:
        return 0
    return packed.ends[packed.metrics.index(metric) + 1 if metric in packed.metrics else 0]


def likely_bytes_needed(metric: str) -> int:
    """What `needed` will hardly exceed: readers of one metric of many chunks fetch no more of each."""
    return _LONGEST_HEAD + _LONGEST_SEGMENT * (_ORDER.get(metric, len(_ORDER)) + 1)


def _segment(chunk: Chunk, row: int) -> bytes:
    numbers = np.stack((chunk.mean[row], chunk.max[row])).astype("<f4", copy=False)
    transposed = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T).tobytes()
    counts = b"" if chunk.step_s == BUCKET_S else chunk.count[row].astype("<u2", copy=False).tobytes()
    return zlib.compress(transposed + counts, _FAST)


@lru_cache(maxsize=1024)
def _packed_names(metrics: tuple[str, ...]) -> bytes:
    return zlib.compress("\n".join(metrics).encode())


@lru_cache(maxsize=1024)
def _names(packed: bytes) -> tuple[str, ...]:
    return tuple(zlib.decompress(packed).decode().split("\n"))
