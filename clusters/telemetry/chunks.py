"""Chunks as bytes: one subject's numbers over a span, metric by metric, so that a reader inflates only those it draws.

A chunk is a head (`version`, step, points, numbers of metrics and of bytes of their names), the names (deflated), the length
of each metric's segment, and the segments. A segment (deflated) holds means and maxima as float32 with their bytes
transposed, which deflates to two thirds of what plain ones do; and, where a point stands for several buckets, of how many.
NaN = not known. A point's place in the chunk is its time: (time - start) / step.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from clusters.telemetry.packing import Numbers, PackingError
from trainhub_launch.metrics import GPU_METRICS, HOST_METRICS
from trainhub_launch.telemetry import BUCKET_S

Counts = npt.NDArray[np.uint16]

POINTS = {BUCKET_S: 360, 60: 180, 600: 144}
"""Step in seconds -> points of one stored chunk: an hour, three hours and a day (docs/adr/0007)."""
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
    """`mean`, `max` and `count` are matrices [metric][point]; `count` is how many buckets a mean stands for."""

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


def empty(start: int, step_s: int, points: int, metrics: Sequence[str]) -> Chunk:
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


def read_chunk(data: bytes, start: int, metrics: Collection[str] | None = None) -> Chunk:
    """With `metrics`, those of them that it holds. Raises PackingError."""
    if not data or data[0] != CHUNK_VERSION:
        raise PackingError(f"a chunk of version {data[0] if data else 'none'} cannot be read")
    try:
        _, step_s, points, held, names_length = _HEAD.unpack_from(data)
        names = _names(data[_HEAD.size : _HEAD.size + names_length])
        at = _HEAD.size + names_length
        ends = list(accumulate(struct.unpack_from(f"<{held}I", data, at), initial=at + held * _LENGTH_BYTES))
        wanted = [row for row in range(held) if metrics is None or names[row] in metrics]
        found = empty(start, step_s, points, [names[row] for row in wanted])
        for place, row in enumerate(wanted):
            _fill(found, place, zlib.decompress(data[ends[row] : ends[row + 1]]))
    except (struct.error, zlib.error, ValueError, IndexError) as error:
        raise PackingError(f"a chunk of {len(data)} bytes cannot be read: {error}") from error
    return found


def needed(data: bytes, metric: str) -> int:
    """How many bytes of a chunk, of which `data` is the beginning, have to be there to read this metric; 0 where it is broken."""
    try:
        _, _, _, held, names_length = _HEAD.unpack_from(data)
        at = _HEAD.size + names_length
        names = _names(data[_HEAD.size : at])
        before = names.index(metric) + 1 if metric in names else 0
        return at + held * _LENGTH_BYTES + sum(struct.unpack_from(f"<{before}I", data, at))
    except (struct.error, zlib.error):
        return 0


def likely_needed(metric: str) -> int:
    """What `needed` will hardly exceed: readers of one metric of many chunks fetch no more of each."""
    return _LONGEST_HEAD + _LONGEST_SEGMENT * (_ORDER.get(metric, len(_ORDER)) + 1)


def _segment(chunk: Chunk, row: int) -> bytes:
    numbers = np.stack((chunk.mean[row], chunk.max[row])).astype("<f4", copy=False)
    transposed = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T).tobytes()
    counts = b"" if chunk.step_s == BUCKET_S else chunk.count[row].astype("<u2", copy=False).tobytes()
    return zlib.compress(transposed + counts, _FAST)


def _fill(chunk: Chunk, place: int, segment: bytes) -> None:
    numbers = _NUMBER_BYTES * chunk.points
    if len(segment) not in (numbers, numbers + _COUNT_BYTES * chunk.points):
        raise ValueError(f"a segment of {len(segment)} bytes does not hold {chunk.points} points")
    planes = np.frombuffer(segment, np.uint8, numbers).reshape(4, -1)
    chunk.mean[place], chunk.max[place] = np.ascontiguousarray(planes.T).view("<f4").reshape(2, -1)
    chunk.count[place] = np.frombuffer(segment, "<u2", offset=numbers) if len(segment) > numbers else ~np.isnan(chunk.mean[place])


@lru_cache(maxsize=1024)
def _packed_names(metrics: tuple[str, ...]) -> bytes:
    return zlib.compress("\n".join(metrics).encode())


@lru_cache(maxsize=1024)
def _names(packed: bytes) -> tuple[str, ...]:
    return tuple(zlib.decompress(packed).decode().split("\n"))
