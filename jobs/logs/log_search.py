"""Searches all logs of an attempt page by page, in order of rank or of the lines' arrival."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.logs import archived_logs, line_index, log_store
from jobs.logs.arrivals import Arrival
from jobs.logs.log_pattern import Pattern
from jobs.logs.log_scan import LineMatch, LogScan, ScanPosition, window_bytes
from jobs.logs.log_timestamps import LogTimeline

# Time limit for a page: it holds the hits found by then.
MAX_PAGE_S = 1.0
MAX_SEARCHES = 2
FIRST_SLICE_BYTES = 2**18
MAX_SLICE_BYTES = 2**25
FAST_SLICE_S = 0.05
# Later than every time of arrival.
END_OF_TIME_MS = 2**53


@dataclass(frozen=True)
class SearchedLog:
    """A log that is searched up to its present size. `rank`: None for a log that belongs to no rank."""

    run: str
    attempt: int
    name: str
    rank: int | None
    size: int
    times: LogTimeline

    @property
    def order(self) -> tuple[float, str]:
        return (float("inf") if self.rank is None else self.rank, self.name)


class LogHit(NamedTuple):
    log: SearchedLog
    match: LineMatch
    line: int
    arrival: Arrival


class LogCursor(NamedTuple):
    """Where the next page continues: in the log `name`, among the lines that arrived at `moment_ms` (0 in
    order of rank). Without a name: with everything that arrived at that moment or later."""

    moment_ms: int
    name: str = ""
    at: int = 0
    line: int | None = None


START = LogCursor(0)


@dataclass
class LogSearchPage:
    """`searched_bytes`: bytes searched so far, including the pages before."""

    hits: list[LogHit] = field(default_factory=list)
    next: LogCursor | None = None
    searched_bytes: int = 0


class _SliceTooSlow(Exception):
    """A time slice could not be searched within the page's time limit; its matches are discarded."""


class LogSearch:
    """Searches for one page of at most `limit` hits."""

    def __init__(
        self, logs: Sequence[SearchedLog], pattern: Pattern, limit: int, seconds: float = MAX_PAGE_S
    ) -> None:
        self._logs = sorted(logs, key=lambda log: log.order)
        self._pattern, self._limit = pattern, limit
        self._seconds, self._deadline = seconds, 0.0
        # A page on a busy machine may find its time over before it has begun: each gets further nevertheless.
        self._has_progress = False
        self._buffer = bytearray(window_bytes(pattern))
        self._page = LogSearchPage()

    def by_rank(self, cursor: LogCursor | None) -> LogSearchPage:
        page = self._run_page(lambda: self._in_sequence(0, END_OF_TIME_MS, cursor or START), cursor)
        page.searched_bytes = self._searched_bytes(page.next, END_OF_TIME_MS)
        return page

    def by_time(self, cursor: LogCursor | None) -> LogSearchPage:
        """Searches time slices: all logs within a slice, then sorts the hits. A moment too large for a slice
        is searched log by log.

        While a run writes, a line of its last moments may appear again on the next page."""
        page = self._run_page(lambda: self._through_time(cursor or START), cursor)
        page.searched_bytes = self._searched_bytes(page.next, page.next.moment_ms + 1 if page.next else 0)
        return page

    def _run_page(self, search: Callable[[], LogCursor | None], cursor: LogCursor | None) -> LogSearchPage:
        with _search_slot(self._seconds) as has_slot:
            self._deadline = time.monotonic() + self._seconds
            if has_slot:
                with self._copies_ahead(cursor):
                    self._page.next = search()
            else:
                self._page.next = cursor or START
        return self._page

    def _copies_ahead(self, cursor: LogCursor | None) -> AbstractContextManager[None]:
        names = [log.name for log in self._logs]
        begin = names.index(cursor.name) if cursor is not None and cursor.name in names else 0
        rows = log_store.archive_rows(self._logs[0].run, self._logs[0].attempt) if self._logs else {}
        return archived_logs.copies_ahead([rows[name] for name in names[begin:] if name in rows])

    def _through_time(self, cursor: LogCursor) -> LogCursor | None:
        if cursor.name:
            # The last page ended among the lines of one moment.
            rest = self._in_sequence(cursor.moment_ms, cursor.moment_ms + 1, cursor)
            if rest is not None:
                return rest
            cursor = LogCursor(cursor.moment_ms + 1)
        smallest = min(FIRST_SLICE_BYTES, len(self._buffer))
        budget, is_first = smallest, True
        while (moment := self._next_moment(cursor.moment_ms)) is not None:
            if self._is_over():
                return LogCursor(moment)
            began_at = time.monotonic()
            until = self._slice_end(moment, budget)
            try:
                # If the page's first slice proves too slow, half of the time remains for a single moment.
                rest = self._search_slice(
                    moment, until, began_at + self._seconds / 2 if is_first else self._deadline
                )
            except _SliceTooSlow:
                if not is_first:
                    return LogCursor(moment)
                until = moment + 1
                rest = self._in_sequence(moment, until)
            if rest is not None:
                return rest
            cursor, is_first, self._has_progress = LogCursor(until), False, True
            is_quick = time.monotonic() - began_at < FAST_SLICE_S
            budget = min(2 * budget, MAX_SLICE_BYTES) if is_quick else max(budget // 2, smallest)
        return None

    def _search_slice(self, begin_ms: int, end_ms: int, give_up_at: float) -> LogCursor | None:
        """Searches a time slice. Raises _SliceTooSlow, but not for a single moment: a page can end inside
        it."""
        return (
            self._in_order(begin_ms, end_ms, give_up_at)
            if end_ms > begin_ms + 1
            else self._in_sequence(begin_ms, end_ms)
        )

    def _next_moment(self, moment_ms: int) -> int | None:
        """Returns the first moment from `moment_ms` on at which bytes arrived, or None."""
        moments = [
            moment for log in self._logs if (moment := log.times.next_moment(moment_ms - 1)) is not None
        ]
        return min(moments, default=None)

    def _slice_end(self, moment_ms: int, budget: int) -> int:
        """Returns the latest end of a time slice from `moment_ms` in which at most `budget` bytes arrived.

        The slice holds at least one moment, however many bytes arrived then."""
        before = sum(log.times.bytes_before(moment_ms) for log in self._logs)
        low, high = moment_ms + 1, max(log.times.last_ms for log in self._logs) + 1
        while low < high:
            middle = (low + high + 1) // 2
            if sum(log.times.bytes_before(middle) for log in self._logs) - before <= budget:
                low = middle
            else:
                high = middle - 1
        return low

    def _in_sequence(self, begin_ms: int, end_ms: int, cursor: LogCursor = START) -> LogCursor | None:
        """Searches log by log, for a single moment or where time does not matter."""
        first = next((index for index, log in enumerate(self._logs) if log.name == cursor.name), 0)
        for log in self._logs[first:]:
            begin, end = log.times.bytes_before(begin_ms), log.times.bytes_before(end_ms)
            place = ScanPosition(cursor.at, cursor.line) if log.name == cursor.name else ScanPosition(begin)
            if place.at >= end:
                continue
            with _open_log(log) as descriptor:
                scan = self._scan(descriptor, log, place, end)
                while True:
                    if self._is_over():
                        return LogCursor(begin_ms, log.name, *scan.place)
                    matches = scan.search_window(self._limit - len(self._page.hits))
                    self._has_progress = True
                    if matches is None:
                        break
                    self._page.hits += [_hit(log, descriptor, item) for item in matches]
        return None

    def _in_order(self, begin_ms: int, end_ms: int, give_up_at: float) -> LogCursor | None:
        """Searches a whole slice: collects at most the free room of the page from each log, then sorts."""
        room = self._limit - len(self._page.hits)
        hits: list[LogHit] = []
        for log in self._logs:
            begin, end = log.times.bytes_before(begin_ms), log.times.bytes_before(end_ms)
            if begin >= end:
                continue
            with _open_log(log) as descriptor:
                own: list[LineMatch] = []
                scan = self._scan(descriptor, log, ScanPosition(begin), end)
                while len(own) < room and (matches := scan.search_window(room - len(own))) is not None:
                    if time.monotonic() > give_up_at:
                        raise _SliceTooSlow
                    own += matches
                hits += [_hit(log, descriptor, item) for item in own]
        hits.sort(key=lambda hit: (hit.arrival.last_ms, hit.log.order, hit.match.offset))
        self._page.hits += hits[:room]
        if len(hits) < room:
            return None
        last = hits[room - 1]
        return LogCursor(last.arrival.last_ms, last.log.name, last.match.offset + 1)

    def _searched_bytes(self, cursor: LogCursor | None, until_ms: int) -> int:
        """Returns how many bytes lie before the cursor, among those that arrived before `until_ms`."""
        if cursor is None:
            return sum(log.size for log in self._logs)
        total, is_before = 0, bool(cursor.name)
        for log in self._logs:
            begin, end = log.times.bytes_before(cursor.moment_ms), log.times.bytes_before(until_ms)
            if log.name == cursor.name:
                is_before = False
                total += min(max(cursor.at, begin), end)
            else:
                total += end if is_before else begin
        return total

    def _scan(self, descriptor: int, log: SearchedLog, begin: ScanPosition, end: int) -> LogScan:
        return LogScan(descriptor, log.size, begin, end, pattern=self._pattern, buffer=self._buffer)

    def _is_over(self) -> bool:
        is_late = self._has_progress and time.monotonic() > self._deadline
        return is_late or len(self._page.hits) >= self._limit


def load_log(run_id: str, attempt: int, name: str, rank: int | None) -> SearchedLog | None:
    """Returns the log, or None if it is empty."""
    size = log_store.size(run_id, attempt, name)
    if not size:
        return None
    times = LogTimeline.load(run_id, attempt, name)
    return SearchedLog(run_id, attempt, name, rank, times.size, times)


# Limits concurrent searches so that the hub stays responsive.
_search_slots = threading.BoundedSemaphore(MAX_SEARCHES)


@contextmanager
def _search_slot(seconds: float) -> Iterator[bool]:
    """Yields whether a search may run now. If not, the page stays empty and its cursor repeats the
    request."""
    has_slot = _search_slots.acquire(timeout=seconds)
    try:
        yield has_slot
    finally:
        if has_slot:
            _search_slots.release()


@contextmanager
def _open_log(log: SearchedLog) -> Iterator[int]:
    descriptor = log_store.open_log(log.run, log.attempt, log.name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hit(log: SearchedLog, descriptor: int, match: LineMatch) -> LogHit:
    line = line_index.line_number((log.run, log.attempt, log.name), descriptor, match.offset)
    return LogHit(log, match, line, log.times.arrival_at(match.offset))
