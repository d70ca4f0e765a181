"""When the bytes of a log arrived, by the hub's own clock: a small file beside each log.

`DATA_DIR/runs/<run>/<attempt>/arrivals/<log>` holds records of three native 64-bit numbers, oldest first: up
to which byte, from when, until when (milliseconds; the last one doubled, plus 1 where the bytes came late). A
record is written at most every 250 ms, never per chunk, and a long file is thinned out; what it says is a
help to readers, never the truth."""

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
from workspaces import process_caches

EVERY_MS = 250
MOST_RECORDS = 2048
MOST_REMEMBERED = 4096
"""Logs whose last record this process keeps in mind."""
A_YEAR_MS = 366 * 24 * 3600 * 1000
WORDS = 3
RECORD_BYTES = 8 * WORDS
Key = tuple[str, int, str]
"""Run, attempt, name of the log."""


class Arrival(NamedTuple):
    """The bytes before `end` that are in no earlier arrival came from `first_ms` to `last_ms`.

    `late`: they had waited while node and hub could not reach each other; when they were written is not
    known."""

    end: int
    first_ms: int
    last_ms: int
    late: bool = False

    def words(self) -> tuple[int, int, int]:
        return self.end, self.first_ms, 2 * self.last_ms + self.late


class Gap(NamedTuple):
    """Nothing came from `from_ms` to `to_ms`; `unheard`: because nothing could, so it says nothing about the
    rank."""

    from_ms: int
    to_ms: int
    unheard: bool


@dataclass
class _Noting:
    """What this process knows of one log's file: the record it still collects, and how many are written."""

    count: int
    last_ms: int
    written_ms: int = 0
    open: Arrival | None = None


_lock = threading.Lock()
_noting: dict[Key, _Noting] = {}


def note(key: Key, begin: int, end: int, now_ms: int, *, late: bool = False) -> None:
    """The bytes from `begin` to `end` of a log have been stored at `now_ms`."""
    known = _noting.get(key) or _begin(key, begin, now_ms)
    now_ms = known.last_ms = max(now_ms, known.last_ms)
    collected, new = known.open, Arrival(end, now_ms, now_ms, late)
    if now_ms - known.written_ms < EVERY_MS and (collected is None or collected.late == late):
        known.open = new if collected is None else collected._replace(end=end, last_ms=now_ms)
        return
    ready = [] if collected is None else [collected]
    if collected is None or now_ms - collected.last_ms >= EVERY_MS:
        # After a silence a line is noted at once; what follows on its heels is collected.
        ready.append(new)
        known.open = None
    else:
        known.open = new
    _write(key, known, ready)
    known.written_ms = now_ms


@process_caches.register
def clear_cache() -> None:
    with _lock:
        _noting.clear()


def forget(run_id: str, attempt: int) -> None:
    """Nothing more will come: write what was still collected."""
    with _lock:
        over = {key: _noting.pop(key) for key in list(_noting) if key[:2] == (run_id, attempt)}
    _write_open(over)


class Timeline:
    """The arrivals of one log, read from its file; `size` and `mtime_ms` are those of the log itself."""

    @classmethod
    def of(cls, run_id: str, attempt: int, name: str) -> Timeline:
        """Raises FileNotFoundError for a log of which nothing has come."""
        told = log_store.path(run_id, attempt, name).stat()
        return cls(_read(_path((run_id, attempt, name))), told.st_size, told.st_mtime_ns // 1_000_000)

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

    def at(self, offset: int) -> Arrival:
        """How the byte at `offset` came; the last arrival for what lies beyond the end."""
        return self._arrival(min(bisect_right(self.ends, offset), len(self.ends) - 1))

    def before(self, moment_ms: int) -> int:
        """How many bytes belong to arrivals that were over before `moment_ms`."""
        count = bisect_left(self._lasts, 2 * moment_ms)
        return self.ends[count - 1] if count else 0

    def next_moment(self, moment_ms: int) -> int | None:
        """The end of the first arrival that was over after `moment_ms`."""
        index = bisect_left(self._lasts, 2 * (moment_ms + 1))
        return self._lasts[index] >> 1 if index < len(self._lasts) else None

    def gaps(self, least_ms: int, *, since_ms: int | None = None) -> list[Gap]:
        """When nothing came for `least_ms` or longer, from `since_ms` (the start of the process) on."""
        skipped = 1 if since_ms is None else 0
        silent_from = self._lasts if since_ms is None else [2 * since_ms, *self._lasts]
        pairs = zip(silent_from, self.firsts[skipped:], self._lasts[skipped:], strict=False)
        return [
            Gap(last >> 1, first, bool(its_last & 1))
            for last, first, its_last in pairs
            if first - (last >> 1) >= least_ms
        ]

    def rhythm_ms(self) -> int:
        """How long this log mostly pauses between two arrivals: the median."""
        pauses = sorted(map(sub, self.firsts[1:], (last >> 1 for last in self._lasts)))
        return max(0, pauses[len(pauses) // 2]) if pauses else 0

    def _arrival(self, index: int) -> Arrival:
        last = self._lasts[index]
        return Arrival(self.ends[index], self.firsts[index], last >> 1, bool(last & 1))

    def _clean(self, size: int) -> None:
        """After a crash the file may know of bytes that the log has lost, and of the same ones twice."""
        kept: list[tuple[int, int, int]] = []
        for end, first, last in zip(self.ends, self.firsts, self._lasts, strict=True):
            while kept and kept[-1][0] >= end:
                kept.pop()
            if end <= size:
                kept.append((end, first, last))
        self.ends, self.firsts, self._lasts = (
            array("Q", (item[index] for item in kept)) for index in range(WORDS)
        )

    def _add_rest(self, size: int, mtime_ms: int) -> None:
        """The last bytes are not noted yet; where nothing is, the log is older than its file or the file is
        lost."""
        mtime_ms = max(mtime_ms, self.last_ms)
        self.firsts.append(max(self.last_ms, mtime_ms - EVERY_MS) if self._lasts else mtime_ms)
        self._lasts.append(2 * mtime_ms + (not self._lasts))
        self.ends.append(size)


def thinned(arrivals: list[Arrival], most: int) -> list[Arrival]:
    """At most `most` of them: neighbours become one, so that the longest silences remain."""
    width = EVERY_MS
    while len(arrivals) > most:
        width *= 2
        kept: list[Arrival] = []
        for item in arrivals:
            alike = kept and (kept[-1].late == item.late or width > A_YEAR_MS)
            if alike and item.last_ms - kept[-1].first_ms <= width:
                kept[-1] = Arrival(item.end, kept[-1].first_ms, item.last_ms, item.late)
            else:
                kept.append(item)
        arrivals = kept
    return arrivals


def _begin(key: Key, begin: int, now_ms: int) -> _Noting:
    """The first chunk that this process stores of a log: what an earlier one wrote may be torn, or miss its
    last bytes."""
    with _lock:
        old = dict(islice(_noting.items(), MOST_REMEMBERED // 2)) if len(_noting) >= MOST_REMEMBERED else {}
        for item in old:
            del _noting[item]
    _write_open(old)
    words = _read(_path(key))
    known = _Noting(len(words) // WORDS, words[-1] >> 1 if words else 0)
    with _lock:
        _noting[key] = known
    if not words and begin:
        _write(key, known, [Arrival(begin, now_ms, now_ms, late=True)])
    elif words and begin > words[-WORDS]:
        # What an ended process had collected but not written came on the heels of its last record.
        last_ms = known.last_ms
        _write(key, known, [Arrival(begin, last_ms, max(last_ms, min(now_ms, last_ms + 2 * EVERY_MS)))])
    return known


def _write_open(logs: dict[Key, _Noting]) -> None:
    for key, known in logs.items():
        if known.open is not None and log_store.folder(key[0], key[1]).exists():
            _write(key, known, [known.open])


def _write(key: Key, known: _Noting, arrivals: list[Arrival]) -> None:
    if known.count + len(arrivals) > MOST_RECORDS:
        _rewrite(key, known, arrivals)
        return
    target = _path(key)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(target, flags, 0o600)
    except FileNotFoundError:
        log_store.make_folders(target.parent)
        descriptor = os.open(target, flags, 0o600)
    try:
        # At the end of the last whole record: one that a crash has torn is written over.
        at = os.fstat(descriptor).st_size // RECORD_BYTES * RECORD_BYTES
        os.pwrite(descriptor, _packed(arrivals), at)
    finally:
        os.close(descriptor)
    known.count += len(arrivals)


def _rewrite(key: Key, known: _Noting, arrivals: list[Arrival]) -> None:
    target, words = _path(key), _read(_path(key))
    columns = zip(words[0::WORDS], words[1::WORDS], words[2::WORDS], strict=True)
    before = [Arrival(end, first, last >> 1, bool(last & 1)) for end, first, last in columns]
    kept = thinned([*before, *arrivals], MOST_RECORDS // 2)
    descriptor, aside = tempfile.mkstemp(dir=target.parent, prefix=".arrivals")
    with os.fdopen(descriptor, "wb") as file:
        file.write(_packed(kept))
    Path(aside).replace(target)
    known.count = len(kept)


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
    log_store.check(name)
    return log_store.folder(run_id, attempt) / "arrivals" / name
