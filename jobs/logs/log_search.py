"""Looking for a pattern in all logs of an attempt, by rank or in the order in which the lines arrived, a page
at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from jobs.logs import line_index, log_store
from jobs.logs.log_pattern import Pattern
from jobs.logs.log_scan import Found, Place, Scan, window_bytes
from jobs.logs.log_timestamps import Arrival, Timeline

SECONDS = 1.0
"""How long a page is looked for; what has been found by then is the page."""
AT_ONCE = 2
FIRST_SLICE_BYTES = 2**18
LARGEST_SLICE_BYTES = 2**25
QUICK_S = 0.05
FOREVER = 2**53


@dataclass(frozen=True)
class Searched:
    """A log that takes part, as long as it is now. `rank`: None where it is no rank's own."""

    run: str
    attempt: int
    name: str
    rank: int | None
    size: int
    times: Timeline

    @property
    def order(self) -> tuple[float, str]:
        return (float("inf") if self.rank is None else self.rank, self.name)


class Hit(NamedTuple):
    log: Searched
    found: Found
    line: int
    arrival: Arrival


class Cursor(NamedTuple):
    """Where to go on: in the log `name`, among the lines that arrived at `moment_ms`; by rank the moment is
    0.

    No name: with all that arrived at that moment or later."""

    moment_ms: int
    name: str = ""
    at: int = 0
    line: int | None = None


START = Cursor(0)


@dataclass
class Page:
    """`searched_bytes`: looked through so far, by the pages before too."""

    hits: list[Hit] = field(default_factory=list)
    next: Cursor | None = None
    searched_bytes: int = 0


class _SliceTooSlow(Exception):
    """A slice of time could not be looked through within the page's time; none of its finds count."""


class Search:
    """One page of at most `limit` hits."""

    def __init__(
        self, logs: Sequence[Searched], pattern: Pattern, limit: int, seconds: float = SECONDS
    ) -> None:
        self._logs = sorted(logs, key=lambda log: log.order)
        self._pattern, self._limit = pattern, limit
        self._seconds, self._deadline = seconds, 0.0
        self._buffer = bytearray(window_bytes(pattern))
        self._page = Page()

    def by_rank(self, cursor: Cursor | None) -> Page:
        page = self._page_of(lambda: self._in_sequence(0, FOREVER, cursor or START), cursor)
        page.searched_bytes = self._searched(page.next, FOREVER)
        return page

    def by_time(self, cursor: Cursor | None) -> Page:
        """Slices of time, each looked through in all logs and then put in order; a large moment log by log.

        While a run writes, a line of its last moments may come again on the next page."""
        page = self._page_of(lambda: self._through_time(cursor or START), cursor)
        page.searched_bytes = self._searched(page.next, page.next.moment_ms + 1 if page.next else 0)
        return page

    def _page_of(self, look: Callable[[], Cursor | None], cursor: Cursor | None) -> Page:
        with _turn(self._seconds) as is_ours:
            self._deadline = time.monotonic() + self._seconds
            self._page.next = look() if is_ours else cursor or START
        return self._page

    def _through_time(self, cursor: Cursor) -> Cursor | None:
        if cursor.name:
            # The last page ended among the lines of one moment.
            rest = self._in_sequence(cursor.moment_ms, cursor.moment_ms + 1, cursor)
            if rest is not None:
                return rest
            cursor = Cursor(cursor.moment_ms + 1)
        smallest = min(FIRST_SLICE_BYTES, len(self._buffer))
        budget, is_first = smallest, True
        while (moment := self._next_moment(cursor.moment_ms)) is not None:
            if self._is_over():
                return Cursor(moment)
            begun = time.monotonic()
            until = self._slice(moment, budget)
            try:
                # Half of the time is left for one moment alone, if the page's first slice proves too slow.
                rest = self._look_through(
                    moment, until, begun + self._seconds / 2 if is_first else self._deadline
                )
            except _SliceTooSlow:
                if not is_first:
                    return Cursor(moment)
                until = moment + 1
                rest = self._in_sequence(moment, until)
            if rest is not None:
                return rest
            cursor, is_first = Cursor(until), False
            is_quick = time.monotonic() - begun < QUICK_S
            budget = min(2 * budget, LARGEST_SLICE_BYTES) if is_quick else max(budget // 2, smallest)
        return None

    def _look_through(self, begin_ms: int, end_ms: int, give_up_at: float) -> Cursor | None:
        """A slice of time. Raises _SliceTooSlow; a single moment is never too slow, as it can be continued
        anywhere."""
        return (
            self._in_order(begin_ms, end_ms, give_up_at)
            if end_ms > begin_ms + 1
            else self._in_sequence(begin_ms, end_ms)
        )

    def _next_moment(self, moment_ms: int) -> int | None:
        """The first moment from `moment_ms` on at which something arrived."""
        found = [moment for log in self._logs if (moment := log.times.next_moment(moment_ms - 1)) is not None]
        return min(found, default=None)

    def _slice(self, moment_ms: int, budget: int) -> int:
        """The latest end of a slice of time from `moment_ms` in which no more than `budget` bytes arrived,
        but for one moment."""
        before = sum(log.times.before(moment_ms) for log in self._logs)
        low, high = moment_ms + 1, max(log.times.last_ms for log in self._logs) + 1
        while low < high:
            middle = (low + high + 1) // 2
            if sum(log.times.before(middle) for log in self._logs) - before <= budget:
                low = middle
            else:
                high = middle - 1
        return low

    def _in_sequence(self, begin_ms: int, end_ms: int, cursor: Cursor = START) -> Cursor | None:
        """Log by log; all is of one moment, or its time does not count."""
        first = next((index for index, log in enumerate(self._logs) if log.name == cursor.name), 0)
        for log in self._logs[first:]:
            begin, end = log.times.before(begin_ms), log.times.before(end_ms)
            place = Place(cursor.at, cursor.line) if log.name == cursor.name else Place(begin)
            if place.at >= end:
                continue
            with _opened(log) as descriptor:
                scan = self._scan(descriptor, log, place, end)
                while True:
                    if self._is_over():
                        return Cursor(begin_ms, log.name, *scan.place)
                    found = scan.window(self._limit - len(self._page.hits))
                    if found is None:
                        break
                    self._page.hits += [_hit(log, descriptor, item) for item in found]
        return None

    def _in_order(self, begin_ms: int, end_ms: int, give_up_at: float) -> Cursor | None:
        """A whole slice: of each log no more than the page still takes, then the first of them all."""
        room = self._limit - len(self._page.hits)
        hits: list[Hit] = []
        for log in self._logs:
            begin, end = log.times.before(begin_ms), log.times.before(end_ms)
            if begin >= end:
                continue
            with _opened(log) as descriptor:
                own: list[Found] = []
                scan = self._scan(descriptor, log, Place(begin), end)
                while len(own) < room and (found := scan.window(room - len(own))) is not None:
                    if time.monotonic() > give_up_at:
                        raise _SliceTooSlow
                    own += found
                hits += [_hit(log, descriptor, item) for item in own]
        hits.sort(key=lambda hit: (hit.arrival.last_ms, hit.log.order, hit.found.offset))
        self._page.hits += hits[:room]
        if len(hits) < room:
            return None
        last = hits[room - 1]
        return Cursor(last.arrival.last_ms, last.log.name, last.found.offset + 1)

    def _searched(self, cursor: Cursor | None, until_ms: int) -> int:
        """How many bytes lie before the cursor, which stands among what arrived before `until_ms`."""
        if cursor is None:
            return sum(log.size for log in self._logs)
        total, is_before = 0, bool(cursor.name)
        for log in self._logs:
            begin, end = log.times.before(cursor.moment_ms), log.times.before(until_ms)
            if log.name == cursor.name:
                is_before = False
                total += min(max(cursor.at, begin), end)
            else:
                total += end if is_before else begin
        return total

    def _scan(self, descriptor: int, log: Searched, begin: Place, end: int) -> Scan:
        return Scan(descriptor, log.size, begin, end, pattern=self._pattern, buffer=self._buffer)

    def _is_over(self) -> bool:
        return len(self._page.hits) >= self._limit or time.monotonic() > self._deadline


def searched(run_id: str, attempt: int, name: str, rank: int | None) -> Searched | None:
    """None for a log of which nothing has come."""
    size = log_store.size(run_id, attempt, name)
    if not size:
        return None
    times = Timeline.of(run_id, attempt, name)
    return Searched(run_id, attempt, name, rank, times.size, times)


_turns = threading.BoundedSemaphore(AT_ONCE)
"""However many people search, the hub's other work goes on."""


@contextmanager
def _turn(seconds: float) -> Iterator[bool]:
    """Whether it is ours to search; if not, the page stays empty and asks to be fetched again."""
    is_ours = _turns.acquire(timeout=seconds)
    try:
        yield is_ours
    finally:
        if is_ours:
            _turns.release()


@contextmanager
def _opened(log: Searched) -> Iterator[int]:
    descriptor = os.open(log_store.path(log.run, log.attempt, log.name), os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hit(log: Searched, descriptor: int, found: Found) -> Hit:
    line = line_index.number((log.run, log.attempt, log.name), descriptor, found.offset)
    return Hit(log, found, line, log.times.at(found.offset))
