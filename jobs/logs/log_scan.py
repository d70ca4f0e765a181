"""Searches a range of one log window by window: never reads the whole file, and reports each line once."""

from __future__ import annotations

import os
import re
from itertools import chain, islice
from typing import NamedTuple

from jobs.logs.log_pattern import Pattern, is_expression, program_size

WINDOW_BYTES = 2**20
# Bytes of a window times instructions of the expression. A search cannot be interrupted within a window, and
# RE2 takes up to 15 ns a step: 0.25 s. The largest expression has windows of 8 KiB; a line longer than a
# window is searched in pieces.
MAX_WINDOW_STEPS = 2**24
BEFORE_BYTES = 80
MAX_TEXT_BYTES = 400
MAX_SPANS = 20
MAX_DISTINCT_ESCAPES = 12
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()*+#%].|[^\n\[\]])")
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


class LineMatch(NamedTuple):
    """A line that matches. `offset`: of its first byte in the log. `text`: the visible text, trimmed around
    the first match; for a line that redraws itself (a progress bar) the version that matches. `spans`: the
    matches in `text`, in characters."""

    offset: int
    text: str
    spans: list[tuple[int, int]]


class ScanPosition(NamedTuple):
    """Position of a scan. `line`: start of the line that continues at `at`, or None if `at` is not inside a
    line whose start is known."""

    at: int
    line: int | None = None


class LogScan:
    """Searches the lines that begin between `begin` and `end` in a file of `size` bytes.

    `buffer` must hold at least one window."""

    def __init__(
        self,
        descriptor: int,
        size: int,
        begin: ScanPosition,
        end: int,
        *,
        pattern: Pattern,
        buffer: bytearray,
    ) -> None:
        self._descriptor, self._end, self._size, self._pattern, self._buffer = (
            descriptor,
            end,
            size,
            pattern,
            buffer,
        )
        self.at = begin.at if begin.line is not None or not begin.at else self._next_line(begin.at)
        self._line = self.at if begin.line is None else begin.line
        self._last_offset = -1  # offset of the last match: a line longer than a window is reported once

    @property
    def place(self) -> ScanPosition:
        return ScanPosition(self.at, self._line if self._line not in (self.at, self._last_offset) else None)

    def search_window(self, max_matches: int) -> list[LineMatch] | None:
        """Returns at most `max_matches` matches of the next window, or None at the end."""
        if self.at >= self._size or self._line >= self._end:
            return None
        # The log may have grown since the search began, which covers its size at that time.
        count = os.preadv(self._descriptor, [memoryview(self._buffer)[: self._size - self.at]], self.at)
        if not count:
            return None
        newline = self._buffer.rfind(b"\n", 0, count)
        # A window ends after its last whole line. In a longer line it ends after a redrawing, else anywhere.
        stop = newline + 1 or self._buffer.rfind(b"\r", 0, count) + 1 or count
        if self.at + count >= self._size:
            stop = count
        matches = self._search(stop, max_matches)
        if len(matches) >= max_matches:
            self.at = self._line = self._next_line(matches[-1].offset + 1)
            return matches
        self.at += stop
        if newline >= 0:
            self._line = self.at if stop == newline + 1 else self.at - (stop - newline - 1)
        return matches

    def _search(self, stop: int, max_matches: int) -> list[LineMatch]:
        lines, is_same = self._cleaned(stop)
        # Each redrawing of a progress bar counts as a line of its own; the replacement keeps all positions.
        drawn = lines.replace(b"\r", b"\n") if lines.find(b"\r", 0, stop) >= 0 else lines
        length = stop if is_same else len(lines)
        matches: list[LineMatch] = []
        counted = raw = position = 0
        while position < length and len(matches) < max_matches:
            match = self._pattern.search(drawn, position, length)
            if match is None:
                break
            start = match.start()
            begin = lines.rfind(b"\n", 0, start) + 1
            if begin >= length:
                break  # an empty match after the last newline is in no line
            if is_same:
                raw = begin
            else:
                for _ in range(lines.count(b"\n", counted, begin)):
                    raw = self._buffer.find(b"\n", raw, stop) + 1
                counted = begin
            offset = self._line if begin == 0 else self.at + raw
            if offset >= self._end:
                break
            if offset != self._last_offset:
                self._last_offset = offset
                matches.append(LineMatch(offset, *_excerpt(drawn, match.span(), length, self._pattern)))
            position = lines.find(b"\n", start, length) + 1 or length
        return matches

    def _cleaned(self, stop: int) -> tuple[bytes | bytearray, bool]:
        """Returns the window without escape sequences, and whether it is the unchanged buffer."""
        if self._buffer.find(b"\x1b", 0, stop) < 0:
            return self._buffer, True
        return without_escapes(bytes(memoryview(self._buffer)[:stop])), False

    def _next_line(self, offset: int) -> int:
        """Returns the offset of the first line that begins at `offset` or later."""
        at, step = offset - 1, 4096
        while piece := os.pread(self._descriptor, min(step, self._size - at) if at < self._size else 0, at):
            newline = piece.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at, step = at + len(piece), WINDOW_BYTES
        return self._size


def window_bytes(pattern: Pattern) -> int:
    """Returns how many bytes of a log are read and searched at once."""
    return (
        min(WINDOW_BYTES, MAX_WINDOW_STEPS // program_size(pattern))
        if is_expression(pattern)
        else WINDOW_BYTES
    )


def without_escapes(text: bytes) -> bytes:
    """Returns the text without escape sequences.

    A log usually repeats a few sequences many times: removing all copies of each at once is twice as fast."""
    for _ in range(MAX_DISTINCT_ESCAPES):
        at = text.find(b"\x1b")
        sequence = ESCAPES.match(text, at) if at >= 0 else None
        if sequence is None:
            break
        text = b"".join(text.split(sequence[0]))
    return ESCAPES.sub(b"", text) if b"\x1b" in text else text


def _excerpt(
    drawn: bytes | bytearray, first_match: tuple[int, int], length: int, pattern: Pattern
) -> tuple[str, list[tuple[int, int]]]:
    """Returns the text around the first match, and the spans of all matches in it."""
    start = first_match[0]
    begin = drawn.rfind(b"\n", 0, start) + 1
    stop = drawn.find(b"\n", start, length)
    stop = length if stop < 0 else stop
    first = _character(drawn, max(begin, start - BEFORE_BYTES), start)
    last = _character(drawn, min(stop, first + MAX_TEXT_BYTES), stop)
    text = "…" if first > begin else ""
    spans: list[tuple[int, int]] = []
    at = first
    # Further matches are searched in the excerpt only: searching the rest of a long line would double the
    # cost.
    until = min(stop, last)
    others = (
        match.span()
        for match in islice(pattern.finditer(drawn, min(first_match[1], until), until), MAX_SPANS - 1)
    )
    for match_start, match_end in chain([first_match], others):
        visible_end = min(match_end, last)
        if match_start >= last:
            break
        if match_start >= visible_end:
            continue
        text += _visible_text(drawn[at:match_start])
        marked = _visible_text(drawn[match_start:visible_end])
        spans.append((len(text), len(text) + len(marked)))
        text += marked
        at = visible_end
    return text + _visible_text(drawn[at:last]) + ("…" if last < stop else ""), spans


def _character(data: bytes | bytearray, position: int, stop: int) -> int:
    """Returns `position`, or the first position after it that is not inside a UTF-8 character."""
    while position < stop and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def _visible_text(data: bytes | bytearray) -> str:
    return INVISIBLE.sub("", data.decode("utf-8", "replace"))
