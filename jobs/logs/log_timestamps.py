"""Arrival times of log bytes by the hub's clock, in a small file beside each log.

`DATA_DIR/runs/<run>/<attempt>/arrivals/<log>` holds records of three native 64-bit numbers, oldest first: end
offset of the bytes, first arrival, last arrival (milliseconds; the last one doubled, plus 1 for late bytes).
A record is written at most every 250 ms, not per chunk, and a long file is thinned out. The times help
readers; nothing may depend on them."""

from __future__ import annotations

import os
import tempfile
import threading
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import islice
from operator import lt, sub
from pathlib import Path
from typing import NamedTuple

from jobs.logs import log_store
from jobs.logs.arrivals import RECORD_INTERVAL_MS, Arrival, arrivals_after, thin_out
from workspaces import process_caches

MAX_RECORDS = 2048
# Number of logs whose unwritten record this process keeps in memory.
MAX_PENDING = 4096
WORDS = 3
RECORD_BYTES = 8 * WORDS
# Run, attempt, name of the log.
Key = tuple[str, int, str]


class LogSilence(NamedTuple):
    """No bytes arrived from `from_ms` to `to_ms`. `is_outage`: the node could not reach the hub, so the
    silence says nothing about the rank."""

    from_ms: int
    to_ms: int
    is_outage: bool


@dataclass
class _PendingArrival:
    """State of one log's file in this process: the record that is still open, and the number written."""

    count: int
    last_ms: int
    written_ms: int = 0
    open: Arrival | None = None


_lock = threading.Lock()
_pending: dict[Key, _PendingArrival] = {}


def record_arrival(key: Key, begin: int, end: int, now_ms: int, *, late: bool = False) -> None:
    """Records that the bytes from `begin` to `end` of a log were stored at `now_ms`."""
    pending = _pending.get(key) or _start_recording(key, begin, now_ms)
    # The search in a log's times is binary, so they must not decrease if the clock is set back.
    now_ms = pending.last_ms = max(now_ms, pending.last_ms)
    open_arrival, new = pending.open, Arrival(end, now_ms, now_ms, late)
    if now_ms - pending.written_ms < RECORD_INTERVAL_MS and (
        open_arrival is None or open_arrival.late == late
    ):
        pending.open = new if open_arrival is None else open_arrival._replace(end=end, last_ms=now_ms)
        return
    ready = [] if open_arrival is None else [open_arrival]
    if open_arrival is None or now_ms - open_arrival.last_ms >= RECORD_INTERVAL_MS:
        # The first bytes after a silence are written at once; those that follow closely are collected.
        ready.append(new)
        pending.open = None
    else:
        pending.open = new
    _write(key, pending, ready)
    pending.written_ms = now_ms


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _pending.clear()


def flush_attempt(run_id: str, attempt: int) -> None:
    """Writes the open records of an attempt and drops its state: no more bytes will arrive."""
    with _lock:
        ended = {key: _pending.pop(key) for key in list(_pending) if key[:2] == (run_id, attempt)}
    _write_open(ended)


class LogTimeline:
    """The arrivals of one log, read from its file. `size` and `mtime_ms` describe the log itself."""

    @classmethod
    def load(cls, run_id: str, attempt: int, name: str) -> LogTimeline:
        """Reads the arrivals of a log. Raises FileNotFoundError for a log without stored bytes."""
        facts = log_store.log_facts(run_id, attempt, name)
        return cls(_read(_path((run_id, attempt, name))), facts.size, facts.written_ms)

    def __init__(self, words: array[int], size: int, mtime_ms: int) -> None:
        self.size = size
        self.ends, self.firsts, self._lasts = words[0::WORDS], words[1::WORDS], words[2::WORDS]
        if not all(map(lt, self.ends, islice(self.ends, 1, None))) or (self.ends and self.ends[-1] > size):
            self._clean(size)
        if size > (self.ends[-1] if self.ends else 0):
            self._add_rest(size, mtime_ms)

    @property
    def last_ms(self) -> int:
        return self._lasts[-1] >> 1 if self._lasts else 0

    def arrival_at(self, offset: int) -> Arrival:
        """Returns the arrival of the byte at `offset`; the last arrival for an offset beyond the end."""
        return self._arrival(self._index_at(offset))

    def arrival_with_begin(self, offset: int) -> tuple[Arrival, int]:
        """Returns the same, and the offset of the first byte that arrived then."""
        index = self._index_at(offset)
        return self._arrival(index), self.ends[index - 1] if index else 0

    def bytes_before(self, moment_ms: int) -> int:
        """Returns the number of bytes in arrivals that ended before `moment_ms`."""
        count = self._count_before(moment_ms)
        return self.ends[count - 1] if count else 0

    def last_before(self, moment_ms: int) -> int:
        """Returns the end of the last arrival that ended before `moment_ms`; 0 if there is none."""
        count = self._count_before(moment_ms)
        return self._lasts[count - 1] >> 1 if count else 0

    def next_moment(self, moment_ms: int) -> int | None:
        """Returns the end of the first arrival that ended after `moment_ms`, or None."""
        index = bisect_left(self._lasts, 2 * (moment_ms + 1))
        return self._lasts[index] >> 1 if index < len(self._lasts) else None

    def gaps(self, min_ms: int, *, since_ms: int | None = None) -> list[LogSilence]:
        """Returns the silences of `min_ms` or longer, from `since_ms` (the start of the process) on."""
        skipped = 1 if since_ms is None else 0
        silent_from = self._lasts if since_ms is None else [2 * since_ms, *self._lasts]
        pairs = zip(silent_from, self.firsts[skipped:], self._lasts[skipped:], strict=False)
        return [
            LogSilence(last >> 1, first, bool(next_last & 1))
            for last, first, next_last in pairs
            if first - (last >> 1) >= min_ms
        ]

    def median_pause_ms(self) -> int:
        """Returns the median pause between two arrivals."""
        pauses = sorted(map(sub, self.firsts[1:], (last >> 1 for last in self._lasts)))
        return max(0, pauses[len(pauses) // 2]) if pauses else 0

    def _index_at(self, offset: int) -> int:
        return min(bisect_right(self.ends, offset), len(self.ends) - 1)

    def _count_before(self, moment_ms: int) -> int:
        return bisect_left(self._lasts, 2 * moment_ms)

    def _arrival(self, index: int) -> Arrival:
        last = self._lasts[index]
        return Arrival(self.ends[index], self.firsts[index], last >> 1, bool(last & 1))

    def _clean(self, size: int) -> None:
        """Removes records that a crash has invalidated: of bytes that the log lost, and duplicates."""
        records: list[tuple[int, int, int]] = []
        for end, first, last in zip(self.ends, self.firsts, self._lasts, strict=True):
            while records and records[-1][0] >= end:
                records.pop()
            if end <= size:
                records.append((end, first, last))
        self.ends, self.firsts, self._lasts = (
            array("Q", (item[index] for item in records)) for index in range(WORDS)
        )

    def _add_rest(self, size: int, mtime_ms: int) -> None:
        """Adds an arrival for the last bytes, which have no record yet.

        Without any record (an older log, or a lost file) all bytes count as late."""
        mtime_ms = max(mtime_ms, self.last_ms)
        self.firsts.append(max(self.last_ms, mtime_ms - RECORD_INTERVAL_MS) if self._lasts else mtime_ms)
        self._lasts.append(2 * mtime_ms + (not self._lasts))
        self.ends.append(size)


def _start_recording(key: Key, begin: int, now_ms: int) -> _PendingArrival:
    """Starts recording a log in this process. The records of an earlier process may be torn or incomplete."""
    with _lock:
        old = dict(islice(_pending.items(), MAX_PENDING // 2)) if len(_pending) >= MAX_PENDING else {}
        for item in old:
            del _pending[item]
    _write_open(old)
    words = _read(_path(key))
    pending = _PendingArrival(len(words) // WORDS, words[-1] >> 1 if words else 0)
    with _lock:
        _pending[key] = pending
    if not words and begin:
        _write(key, pending, [Arrival(begin, now_ms, now_ms, late=True)])
    elif words and begin > words[-WORDS]:
        # The earlier process ended with an open record, whose bytes closely followed its last written one.
        last_ms = pending.last_ms
        _write(
            key,
            pending,
            [Arrival(begin, last_ms, max(last_ms, min(now_ms, last_ms + 2 * RECORD_INTERVAL_MS)))],
        )
    return pending


def _write_open(logs: dict[Key, _PendingArrival]) -> None:
    for key, pending in logs.items():
        if pending.open is not None and log_store.run_folder(key[0], key[1]).exists():
            _write(key, pending, [pending.open])


def _write(key: Key, pending: _PendingArrival, arrivals: list[Arrival]) -> None:
    if pending.count + len(arrivals) > MAX_RECORDS:
        _rewrite(key, pending, arrivals)
        return
    target = _path(key)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(target, flags, 0o600)
    except FileNotFoundError:
        log_store.make_folders(target.parent)
        descriptor = os.open(target, flags, 0o600)
    try:
        # Writing continues after the last whole record and overwrites one that a crash has torn.
        at = os.fstat(descriptor).st_size // RECORD_BYTES * RECORD_BYTES
        if at != pending.count * RECORD_BYTES:
            # Another server has written meanwhile: records go on after its last one.
            arrivals = arrivals_after(_last_record(target), arrivals)
            pending.count = at // RECORD_BYTES
        os.pwrite(descriptor, _packed(arrivals), at)
    finally:
        os.close(descriptor)
    pending.count += len(arrivals)


def _last_record(target: Path) -> tuple[int, int]:
    """Returns the end and the last arrival (ms) of the last record in the file."""
    words = _read(target)
    return (words[-WORDS], words[-1] >> 1) if words else (0, 0)


def _rewrite(key: Key, pending: _PendingArrival, arrivals: list[Arrival]) -> None:
    target, words = _path(key), _read(_path(key))
    columns = zip(words[0::WORDS], words[1::WORDS], words[2::WORDS], strict=True)
    before = [Arrival(end, first, last >> 1, bool(last & 1)) for end, first, last in columns]
    survivors = thin_out([*before, *arrivals], MAX_RECORDS // 2)
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".arrivals")
    with os.fdopen(descriptor, "wb") as file:
        file.write(_packed(survivors))
    Path(aside).replace(target)
    pending.count = len(survivors)


def _packed(arrivals: list[Arrival]) -> bytes:
    return array("Q", [word for item in arrivals for word in item.words()]).tobytes()


def _read(target: Path) -> array[int]:
    words: array[int] = array("Q")
    try:
        data = target.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return words
    words.frombytes(data[: len(data) // RECORD_BYTES * RECORD_BYTES])
    return words


def _path(key: Key) -> Path:
    run_id, attempt, name = key
    log_store.check_name(name)
    return log_store.run_folder(run_id, attempt) / "arrivals" / name
