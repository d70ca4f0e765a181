"""Reads the lines of a stored log from an offset on, each once, with the time at which it arrived."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jobs.logs import log_store
from jobs.logs.log_timestamps import LogTimeline

READ_BYTES = 512 * 1024
MS = 1_000_000
# Lines that are longer than a target accepts come in pieces, each with this sign where it was cut.
CUT = "…"
# Begin, end and text of a line or a piece; None for text that a line has overwritten since.
_Piece = tuple[int, int, str | None]


@dataclass(frozen=True, eq=False)
class LogSource:
    """A log of an attempt, and what is to be said about each of its lines. `rank`: None for a log of a node
    or of the whole attempt. `trace_id`: of the run's trace, which is the run's own id."""

    workspace: str
    experiment: str
    run: str
    number: int
    attempt: int
    log: str
    stream: str
    node: str
    rank: int | None

    @property
    def jitter_ns(self) -> int:
        """Returns less than a millisecond, for this log always the same: a log system may take two equal
        lines of the same nanosecond for one, and ranks that print the same arrive together."""
        digest = hashlib.blake2b(f"{self.run}/{self.attempt}/{self.log}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) % MS


class SourceLine(NamedTuple):
    """A line, or a piece of a long one. `end`: the offset after it in its log; `time_ns`: since 1970."""

    source: LogSource
    time_ns: int
    text: str
    end: int


class LineReader:
    """What is not shipped yet of one log. `at`: the offset of the next line; `next_ns`: when it arrived;
    `size`: the end of what is read. `is_over`: no more bytes will come, so that the last line needs no end.

    Raises FileNotFoundError where the log has been purged."""

    def __init__(self, source: LogSource, at: int, *, is_over: bool, max_line_bytes: int) -> None:
        self.source = source
        self.at = at
        self._is_over = is_over
        # The signs of both cuts belong to the piece.
        self._max_bytes = max_line_bytes - 2 * len(CUT.encode())
        self._jitter_ns = source.jitter_ns
        times = self._load_times()
        self.size = times.size
        self.next_ns = _Clock(times, self._jitter_ns).time_ns(at)

    def read_lines(self, until_ns: int, max_bytes: int, max_count: int) -> list[SourceLine]:
        """Returns some of the next lines, at least one, and moves behind them; nothing where only the
        beginning of a line is there. No line but the first is later than `until_ns`, and only the last may be
        beyond `max_bytes`."""
        source, at = self.source, self.at
        data = log_store.read(source.run, source.attempt, source.log, at, READ_BYTES)[: self.size - at]
        is_end = self._is_over and at + len(data) >= self.size
        clock, last_ns = _Clock(self._load_times(), self._jitter_ns), 0
        lines: list[SourceLine] = []
        for begin, end, text in self._pieces(data, self._is_inside_line(), is_end=is_end):
            time_ns = clock.time_ns(at + begin)
            if time_ns <= last_ns:
                time_ns = last_ns + 1
            if lines and time_ns > until_ns:
                break
            last_ns = time_ns
            self.at = at + end
            if text is not None:
                lines.append(SourceLine(source, time_ns, text, self.at))
                if end >= max_bytes or len(lines) >= max_count:
                    break
        self.next_ns = clock.time_ns(self.at)
        return lines

    def _pieces(self, data: bytes, is_inside: bool, *, is_end: bool) -> Iterator[_Piece]:
        begin = 0
        while begin < len(data):
            newline = data.find(b"\n", begin)
            if newline < 0 and not is_end:
                yield from self._long_line(data, begin, is_inside)
                return
            end = newline + 1 or len(data)
            line = data[begin : newline if newline >= 0 else end]
            if not is_inside and len(line) <= self._max_bytes and b"\r" not in line:
                yield begin, end, line.decode("utf-8", "replace")
                begin = end
                continue
            line = line.rstrip(b"\r")
            # What a terminal shows of a line that was drawn again and again, such as a progress bar.
            state = line.rfind(b"\r") + 1
            *pieces, rest = self._cut(line[state:], begin + state)
            is_inside = is_inside and not state
            for piece_begin, piece in pieces:
                yield piece_begin, piece_begin + len(piece), _marked(piece, is_inside, is_open=True)
                is_inside = True
            yield rest[0], end, _marked(rest[1], is_inside, is_open=False)
            begin, is_inside = end, False

    def _long_line(self, data: bytes, begin: int, is_inside: bool) -> Iterator[_Piece]:
        """Yields what can be said of a line before its end is here: whole pieces of a long one, and nothing
        for what a progress bar has overwritten."""
        if len(data) - begin <= self._max_bytes:
            return
        state = data.rstrip(b"\r").rfind(b"\r", begin) + 1
        if state > begin:
            yield begin, state, None
            begin, is_inside = state, False
        *pieces, _ = self._cut(data[begin:], begin)
        for piece_begin, piece in pieces:
            yield piece_begin, piece_begin + len(piece), _marked(piece, is_inside, is_open=True)
            is_inside = True

    def _cut(self, line: bytes, begin: int) -> list[tuple[int, bytes]]:
        """Returns the pieces of a line, the last one not longer than allowed, each with its offset."""
        pieces = []
        while len(line) > self._max_bytes:
            count = _whole_characters(line, self._max_bytes)
            pieces.append((begin, line[:count]))
            begin, line = begin + count, line[count:]
        return [*pieces, (begin, line)]

    def _is_inside_line(self) -> bool:
        """Returns whether the bytes at `at` go on with a line of which pieces were shipped."""
        if not self.at:
            return False
        before = log_store.read(self.source.run, self.source.attempt, self.source.log, self.at - 1, 1)
        return before not in (b"\n", b"\r")

    def _load_times(self) -> LogTimeline:
        # Not remembered: thousands of logs may wait at the same time.
        return LogTimeline.load(self.source.run, self.source.attempt, self.source.log)


class _Clock:
    """Times of growing offsets. What arrived together is spread over the time in which it came, so that lines
    stay in order, and a line that is shipped again has the same time."""

    def __init__(self, times: LogTimeline, jitter_ns: int) -> None:
        self._times = times
        self._jitter_ns = jitter_ns
        self._begin = self._end = 0
        self._first_ns = self._span_ns = 0

    def time_ns(self, offset: int) -> int:
        if not self._begin <= offset < self._end:
            self._move_to(offset)
        bytes_before = offset - self._begin
        within = bytes_before * self._span_ns // max(1, self._end - self._begin)
        return self._first_ns + within + self._jitter_ns

    def _move_to(self, offset: int) -> None:
        arrival, self._begin = self._times.arrival_with_begin(offset)
        self._end = arrival.end
        self._first_ns = arrival.first_ms * MS
        self._span_ns = max(1, arrival.last_ms - arrival.first_ms) * MS


def _marked(piece: bytes, is_inside: bool, *, is_open: bool) -> str:
    text = piece.decode("utf-8", "replace")
    if not (is_inside or is_open):
        return text
    return f"{CUT if is_inside else ''}{text}{CUT if is_open else ''}"


def _whole_characters(data: bytes, limit: int) -> int:
    """Returns how many of the first `limit` bytes end with a whole character of UTF-8."""
    for count in range(limit, max(limit - 4, 0), -1):
        if data[count] & 0xC0 != 0x80:
            return count
    return limit
