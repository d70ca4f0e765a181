"""What was measured: the last minute second by second, and the last hour in buckets of ten that the hub does
not have yet."""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from trainhub_launch.metrics import GPU_KEYS, HOST_KEYS
from trainhub_launch.telemetry import BUCKET_S, HOST, MOST_SUBJECTS, SAMPLE_S, UNKNOWN, Block, pack

KEPT_SAMPLES = 60
KEPT_BUCKETS = 360
"""An hour of them."""
MOST_BLOCKS = 60
STEP_S = 1.0
"""A wall clock that moves by more than this against the steady one was set."""

Numbers = Mapping[str, float]


class Sample(NamedTuple):
    """`gpus`: UUID -> its numbers."""

    serial: int
    second: int
    host: Numbers
    gpus: Mapping[str, Numbers]


class Bucket(NamedTuple):
    """`blocks`: of one step each, the host's and the GPUs', as far as anything is known of them."""

    serial: int
    start: int
    host: Block | None
    gpus: Block | None

    @property
    def size(self) -> int:
        return sum(len(block.values) + len(block.peaks) for block in (self.host, self.gpus) if block)


class Recorder:
    """Thread-safe. Times are the node's own; where its clock is set, what is held moves with it, so that the
    hub, which knows how far the node's clock is off *now*, places all of it rightly, and no moment is told
    twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)
        self._open: list[Sample] = []
        self._closed: deque[Bucket] = deque(maxlen=KEPT_BUCKETS)
        self._serial = 0
        self._second = -1
        self._until = 0
        self._ahead: float | None = None

    def add(self, wall: float, steady: float, host: Numbers, gpus: Mapping[str, Numbers]) -> None:
        """`wall` in Unix seconds; `steady` by a clock that nobody sets and that goes on while the machine
        sleeps."""
        with self._lock:
            self._follow(wall - steady)
            second = int(wall)
            if second <= self._second:
                return
            self._second = second
            self._serial += 1
            sample = Sample(self._serial, second, host, gpus)
            self._samples.append(sample)
            if self._open and _start(self._open[0].second) != _start(second):
                self._close()
            if _start(second) >= self._until:
                self._open.append(sample)

    def samples(self, after: int) -> tuple[tuple[Block, ...], int]:
        """Those since the one of the serial `after`, and the serial of the last."""
        with self._lock:
            new = [sample for sample in self._samples if sample.serial > after]
            last = self._serial
        return tuple(block for run in _runs(new) for block in _blocks_of(run)), last

    def has_samples(self, after: int) -> bool:
        return self._serial > after

    def buckets(self, most: int, most_bytes: int) -> tuple[Bucket, ...]:
        """The oldest that nobody has confirmed; at least one, however large, if `most` allows it."""
        taken: list[Bucket] = []
        with self._lock:
            for bucket in self._closed:
                most_bytes -= bucket.size
                if len(taken) >= most or (taken and most_bytes < 0):
                    break
                taken.append(bucket)
        while len(joined(taken)) > MOST_BLOCKS:
            del taken[len(taken) // 2 :]
        return tuple(taken)

    def confirm(self, sent: Iterable[Bucket], until: int) -> None:
        """Forget those of `sent` that end at or before `until`, by the clock that they were sent with."""
        self.forget([bucket for bucket in sent if bucket.start + BUCKET_S <= until])

    def forget(self, sent: Sequence[Bucket]) -> None:
        """These, and what is older."""
        last = max((bucket.serial for bucket in sent), default=0)
        with self._lock:
            while self._closed and self._closed[0].serial <= last:
                self._closed.popleft()

    def _follow(self, ahead: float) -> None:
        """`ahead`: of the wall clock, against the steady one."""
        moved, self._ahead = (0.0 if self._ahead is None else ahead - self._ahead), ahead
        if abs(moved) < STEP_S:
            return
        self._close()
        seconds, buckets = round(moved), round(moved / BUCKET_S) * BUCKET_S
        held = [sample._replace(second=sample.second + seconds) for sample in self._samples]
        self._samples = deque((sample for sample in held if sample.second >= 0), KEPT_SAMPLES)
        self._closed = deque(
            (_moved(bucket, buckets) for bucket in self._closed if bucket.start + buckets >= 0), KEPT_BUCKETS
        )
        self._second += seconds
        self._until += buckets

    def _close(self) -> None:
        if not self._open:
            return
        rows, self._open = self._open, []
        start = _start(rows[0].second)
        self._until = start + BUCKET_S
        gpus = dict.fromkeys(uuid for row in rows for uuid, numbers in row.gpus.items() if numbers)
        host = _folded(start, {HOST: [row.host for row in rows]}, HOST_KEYS)
        devices = _folded(start, {uuid: [row.gpus.get(uuid, {}) for row in rows] for uuid in gpus}, GPU_KEYS)
        if host or devices:
            self._closed.append(Bucket(rows[-1].serial, start, host, devices))


def joined(buckets: Sequence[Bucket]) -> tuple[Block, ...]:
    """As few blocks as possible, oldest first."""
    lanes = ([bucket.host for bucket in buckets], [bucket.gpus for bucket in buckets])
    blocks = [block for lane in lanes for block in _joined([block for block in lane if block])]
    return tuple(sorted(blocks, key=lambda block: block.start))


def _joined(blocks: Sequence[Block]) -> Iterable[Block]:
    run: list[Block] = []
    for block in blocks:
        if run and (block.start, block.subjects, block.metrics) != (
            run[-1].end,
            run[0].subjects,
            run[0].metrics,
        ):
            yield _one(run)
            run = []
        run.append(block)
    if run:
        yield _one(run)


def _one(run: Sequence[Block]) -> Block:
    return replace(
        run[0], values=b"".join(block.values for block in run), peaks=b"".join(block.peaks for block in run)
    )


def _folded(start: int, rows: Mapping[str, Sequence[Numbers]], known: Collection[str]) -> Block | None:
    """Mean and maximum of each subject and metric over the bucket; None where nothing is known."""
    subjects = tuple(rows)[:MOST_SUBJECTS]
    metrics = _told((row for subject in subjects for row in rows[subject]), known)
    means, peaks = array("f"), array("f")
    for subject in subjects:
        for metric in metrics:
            told = [row[metric] for row in rows[subject] if metric in row]
            means.append(sum(told) / len(told) if told else UNKNOWN)
            peaks.append(max(told, default=UNKNOWN))
    return Block(start, BUCKET_S, subjects, metrics, means.tobytes(), peaks.tobytes()) if means else None


def _runs(samples: Sequence[Sample]) -> Iterable[Sequence[Sample]]:
    """Cut where a second is missing or other GPUs are there."""
    cuts = [
        at
        for at, (one, other) in enumerate(pairwise(samples), start=1)
        if other.second != one.second + SAMPLE_S or tuple(other.gpus) != tuple(one.gpus)
    ]
    return [samples[begin:end] for begin, end in pairwise([0, *cuts, len(samples)]) if begin < end]


def _blocks_of(run: Sequence[Sample]) -> Iterable[Block]:
    start, subjects = run[0].second, tuple(run[0].gpus)[:MOST_SUBJECTS]
    if metrics := _told((sample.host for sample in run), HOST_KEYS):
        yield Block(start, SAMPLE_S, (HOST,), metrics, pack([[sample.host] for sample in run], metrics))
    if metrics := _told((sample.gpus[uuid] for sample in run for uuid in subjects), GPU_KEYS):
        rows = [[sample.gpus[uuid] for uuid in subjects] for sample in run]
        yield Block(start, SAMPLE_S, subjects, metrics, pack(rows, metrics))


def _told(rows: Iterable[Numbers], known: Collection[str]) -> tuple[str, ...]:
    """In the order of their table, so that blocks of one machine are alike."""
    present = set().union(*rows)
    return tuple(metric for metric in known if metric in present)


def _moved(bucket: Bucket, seconds: int) -> Bucket:
    def move(block: Block | None) -> Block | None:
        return block and replace(block, start=block.start + seconds)

    return Bucket(bucket.serial, bucket.start + seconds, move(bucket.host), move(bucket.gpus))


def _start(second: int) -> int:
    return second - second % BUCKET_S
