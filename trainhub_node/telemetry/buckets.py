"""Measured values: the last minute second by second, and unconfirmed ten-second buckets of the last hour."""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import BUCKET_S, HOST, MAX_SUBJECTS, SAMPLE_S, UNKNOWN, Block, pack

MAX_SAMPLES = 60
# One hour.
MAX_BUCKETS = 360
MAX_BLOCKS = 60
# A wall clock that moves by more than this against the steady clock was set.
CLOCK_STEP_S = 1.0

Numbers = Mapping[str, float]


class HostSample(NamedTuple):
    """The numbers of one second. `gpus`: UUID -> numbers of that GPU."""

    serial: int
    second: int
    host: Numbers
    gpus: Mapping[str, Numbers]


class Bucket(NamedTuple):
    """Ten seconds of numbers. `blocks` hold one step each: the host's and the GPUs', None without values."""

    serial: int
    start: int
    host: Block | None
    gpus: Block | None

    @property
    def size(self) -> int:
        return sum(len(block.values) + len(block.peaks) for block in (self.host, self.gpus) if block)


class Recorder:
    """Keeps recent samples and unconfirmed buckets; thread-safe.

    Times are the node's own. When its clock is set, stored samples and buckets move with it: the hub knows
    only the present offset of the node's clock, and must place all values correctly and no moment twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: deque[HostSample] = deque(maxlen=MAX_SAMPLES)
        self._current: list[HostSample] = []
        self._buckets: deque[Bucket] = deque(maxlen=MAX_BUCKETS)
        self._serial = 0
        self._second = -1
        self._buckets_end = 0
        self._clock_offset: float | None = None

    def add(self, wall: float, steady: float, host: Numbers, gpus: Mapping[str, Numbers]) -> None:
        """Adds the numbers of one second. A second that is not later than the last one is ignored.

        `wall`: Unix seconds. `steady`: seconds of a clock that is never set and continues while the machine
        sleeps."""
        with self._lock:
            self._adjust_clock(wall - steady)
            second = int(wall)
            if second <= self._second:
                return
            self._second = second
            self._serial += 1
            sample = HostSample(self._serial, second, host, gpus)
            self._samples.append(sample)
            if self._current and _bucket_start(self._current[0].second) != _bucket_start(second):
                self._close_bucket()
            # A bucket that was closed is never opened again: after a clock step its time could come twice.
            if _bucket_start(second) >= self._buckets_end:
                self._current.append(sample)

    def samples(self, after: int) -> tuple[tuple[Block, ...], int]:
        """Returns the samples after the serial `after` as blocks, and the serial of the last one."""
        with self._lock:
            new = [sample for sample in self._samples if sample.serial > after]
            last = self._serial
        return tuple(block for run in _runs(new) for block in _blocks(run)), last

    def has_samples(self, after: int) -> bool:
        return self._serial > after

    def buckets(self, max_count: int, max_bytes: int) -> tuple[Bucket, ...]:
        """Returns the oldest unconfirmed buckets: at least one, however large, if `max_count` allows it."""
        batch: list[Bucket] = []
        with self._lock:
            for bucket in self._buckets:
                max_bytes -= bucket.size
                if len(batch) >= max_count or (batch and max_bytes < 0):
                    break
                batch.append(bucket)
        # Buckets merge only with equal subjects and metrics, so that a batch may become many blocks.
        while len(merge(batch)) > MAX_BLOCKS:
            del batch[len(batch) // 2 :]
        return tuple(batch)

    def confirm(self, batch: Iterable[Bucket], stored_until: int) -> None:
        """Drops the buckets of `batch` that end at or before `stored_until` (Unix seconds by this node's
        clock when the report was sent)."""
        self.drop([bucket for bucket in batch if bucket.start + BUCKET_S <= stored_until])

    def drop(self, batch: Sequence[Bucket]) -> None:
        """Drops these buckets and all older ones."""
        last = max((bucket.serial for bucket in batch), default=0)
        with self._lock:
            while self._buckets and self._buckets[0].serial <= last:
                self._buckets.popleft()

    def _adjust_clock(self, offset: float) -> None:
        """Moves stored values when the wall clock was set. `offset`: wall clock minus steady clock, in
        seconds."""
        shift, self._clock_offset = (
            (0.0 if self._clock_offset is None else offset - self._clock_offset),
            offset,
        )
        if abs(shift) < CLOCK_STEP_S:
            return
        # A bucket must not hold seconds of both clocks. Buckets move by whole steps, to stay on the grid.
        self._close_bucket()
        seconds, buckets = round(shift), round(shift / BUCKET_S) * BUCKET_S
        samples = [sample._replace(second=sample.second + seconds) for sample in self._samples]
        self._samples = deque((sample for sample in samples if sample.second >= 0), MAX_SAMPLES)
        self._buckets = deque(
            (_shift(bucket, buckets) for bucket in self._buckets if bucket.start + buckets >= 0), MAX_BUCKETS
        )
        self._second += seconds
        self._buckets_end += buckets

    def _close_bucket(self) -> None:
        if not self._current:
            return
        rows, self._current = self._current, []
        start = _bucket_start(rows[0].second)
        self._buckets_end = start + BUCKET_S
        gpus = dict.fromkeys(uuid for row in rows for uuid, numbers in row.gpus.items() if numbers)
        host = _aggregate(start, {HOST: [row.host for row in rows]}, HOST_KEYS)
        devices = _aggregate(
            start, {uuid: [row.gpus.get(uuid, {}) for row in rows] for uuid in gpus}, GPU_KEYS
        )
        if host or devices:
            self._buckets.append(Bucket(rows[-1].serial, start, host, devices))


def merge(buckets: Sequence[Bucket]) -> tuple[Block, ...]:
    """Returns the buckets as as few blocks as possible, oldest first."""
    lanes = ([bucket.host for bucket in buckets], [bucket.gpus for bucket in buckets])
    blocks = [block for lane in lanes for block in _merge_consecutive([block for block in lane if block])]
    return tuple(sorted(blocks, key=lambda block: block.start))


def _merge_consecutive(blocks: Sequence[Block]) -> Iterable[Block]:
    run: list[Block] = []
    for block in blocks:
        if run and (block.start, block.subjects, block.metrics) != (
            run[-1].end,
            run[0].subjects,
            run[0].metrics,
        ):
            yield _concatenate(run)
            run = []
        run.append(block)
    if run:
        yield _concatenate(run)


def _concatenate(run: Sequence[Block]) -> Block:
    return replace(
        run[0], values=b"".join(block.values for block in run), peaks=b"".join(block.peaks for block in run)
    )


def _aggregate(start: int, rows: Mapping[str, Sequence[Numbers]], columns: Collection[str]) -> Block | None:
    """Returns mean and maximum of each subject and metric over the bucket, or None without values."""
    subjects = tuple(rows)[:MAX_SUBJECTS]
    metrics = _present_metrics((row for subject in subjects for row in rows[subject]), columns)
    means, peaks = array("f"), array("f")
    for subject in subjects:
        for metric in metrics:
            values = [row[metric] for row in rows[subject] if metric in row]
            means.append(sum(values) / len(values) if values else UNKNOWN)
            peaks.append(max(values, default=UNKNOWN))
    return Block(start, BUCKET_S, subjects, metrics, means.tobytes(), peaks.tobytes()) if means else None


def _runs(samples: Sequence[HostSample]) -> Iterable[Sequence[HostSample]]:
    """Splits the samples where a second is missing or the set of GPUs changes."""
    cuts = [
        index
        for index, (earlier, later) in enumerate(pairwise(samples), start=1)
        if later.second != earlier.second + SAMPLE_S or tuple(later.gpus) != tuple(earlier.gpus)
    ]
    return [samples[begin:end] for begin, end in pairwise([0, *cuts, len(samples)]) if begin < end]


def _blocks(run: Sequence[HostSample]) -> Iterable[Block]:
    start, subjects = run[0].second, tuple(run[0].gpus)[:MAX_SUBJECTS]
    if metrics := _present_metrics((sample.host for sample in run), HOST_KEYS):
        yield Block(start, SAMPLE_S, (HOST,), metrics, pack([[sample.host] for sample in run], metrics))
    if metrics := _present_metrics((sample.gpus[uuid] for sample in run for uuid in subjects), GPU_KEYS):
        rows = [[sample.gpus[uuid] for uuid in subjects] for sample in run]
        yield Block(start, SAMPLE_S, subjects, metrics, pack(rows, metrics))


def _present_metrics(rows: Iterable[Numbers], columns: Collection[str]) -> tuple[str, ...]:
    """Returns the metrics that occur in `rows`, in the order of `columns`, so that blocks of one machine
    are alike."""
    present = set().union(*rows)
    return tuple(metric for metric in columns if metric in present)


def _shift(bucket: Bucket, seconds: int) -> Bucket:
    def shift_block(block: Block | None) -> Block | None:
        return block and replace(block, start=block.start + seconds)

    return Bucket(bucket.serial, bucket.start + seconds, shift_block(bucket.host), shift_block(bucket.gpus))


def _bucket_start(second: int) -> int:
    return second - second % BUCKET_S
