"""Looking through a stretch of one log, a window at a time: never the whole file, and never one line
twice."""

from __future__ import annotations

import os
import re
from itertools import chain, islice
from typing import NamedTuple

from jobs.logs.log_pattern import Pattern, is_expression, program_size

WINDOW_BYTES = 2**20
MAX_WINDOW_STEPS = 2**24
"""Bytes of a window times instructions of the expression. A search cannot be interrupted within a window, and
RE2 takes up to 15 ns a step: 0.25 s. The largest expression has windows of 8 KiB; a line longer than a window
is looked at in pieces."""
BEFORE_BYTES = 80
SHOWN_BYTES = 400
MOST_SPANS = 20
MOST_DIFFERENT = 12
ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()*+#%].|[^\n\[\]])")
INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


class Found(NamedTuple):
    """A line that matches. `offset`: of its first byte. `text`: the line as seen, trimmed around the first
    match; of one that redraws itself the drawing that matches. `spans`: where in `text`, in characters."""

    offset: int
    text: str
    spans: list[tuple[int, int]]


class Place(NamedTuple):
    """How far a scan has come. `line`: where the line begins that goes on at `at`; None: the next one is
    still to be found."""

    at: int
    line: int | None = None


class Scan:
    """The lines that begin from `begin` up to `end`, in a file of `size` bytes; `buffer` is at least one
    window long."""

    def __init__(
        self, descriptor: int, size: int, begin: Place, end: int, *, pattern: Pattern, buffer: bytearray
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
        self._told = -1  # the line found last: one longer than a window is told once

    @property
    def place(self) -> Place:
        return Place(self.at, self._line if self._line not in (self.at, self._told) else None)

    def window(self, most: int) -> list[Found] | None:
        """At most `most` finds of the next window; None at the end."""
        if self.at >= self._size or self._line >= self._end:
            return None
        count = os.preadv(self._descriptor, [memoryview(self._buffer)[: self._size - self.at]], self.at)
        if not count:
            return None
        newline = self._buffer.rfind(b"\n", 0, count)
        stop = newline + 1 or self._buffer.rfind(b"\r", 0, count) + 1 or count
        if self.at + count >= self._size:
            stop = count
        found = self._look(stop, most)
        if len(found) >= most:
            self.at = self._line = self._next_line(found[-1].offset + 1)
            return found
        self.at += stop
        if newline >= 0:
            self._line = self.at if stop == newline + 1 else self.at - (stop - newline - 1)
        return found

    def _look(self, stop: int, most: int) -> list[Found]:
        lines, is_same = self._cleaned(stop)
        # A bar that redraws itself is as many lines to the pattern, of equal lengths so that positions stay.
        drawn = lines.replace(b"\r", b"\n") if lines.find(b"\r", 0, stop) >= 0 else lines
        length = stop if is_same else len(lines)
        found: list[Found] = []
        counted = raw = position = 0
        while position < length and len(found) < most:
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
            if offset != self._told:
                self._told = offset
                found.append(Found(offset, *_shown(drawn, match.span(), length, self._pattern)))
            position = lines.find(b"\n", start, length) + 1 or length
        return found

    def _cleaned(self, stop: int) -> tuple[bytes | bytearray, bool]:
        """The window without escape sequences, and whether it had none."""
        if self._buffer.find(b"\x1b", 0, stop) < 0:
            return self._buffer, True
        return without_escapes(bytes(memoryview(self._buffer)[:stop])), False

    def _next_line(self, offset: int) -> int:
        """The first byte of the first line that begins at `offset` or later."""
        at, step = offset - 1, 4096
        while piece := os.pread(self._descriptor, min(step, self._size - at) if at < self._size else 0, at):
            newline = piece.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at, step = at + len(piece), WINDOW_BYTES
        return self._size


def window_bytes(pattern: Pattern) -> int:
    """How much of a log is read and searched at once."""
    return (
        min(WINDOW_BYTES, MAX_WINDOW_STEPS // program_size(pattern))
        if is_expression(pattern)
        else WINDOW_BYTES
    )


def without_escapes(text: bytes) -> bytes:
    """A log mostly has a few sequences many times: taking all of one out at once is twice as fast as one by
    one."""
    for _ in range(MOST_DIFFERENT):
        at = text.find(b"\x1b")
        found = ESCAPES.match(text, at) if at >= 0 else None
        if found is None:
            break
        text = b"".join(text.split(found[0]))
    return ESCAPES.sub(b"", text) if b"\x1b" in text else text


def _shown(
    drawn: bytes | bytearray, first_match: tuple[int, int], length: int, pattern: Pattern
) -> tuple[str, list[tuple[int, int]]]:
    """The drawing around a match, with every match in it."""
    start = first_match[0]
    begin = drawn.rfind(b"\n", 0, start) + 1
    stop = drawn.find(b"\n", start, length)
    stop = length if stop < 0 else stop
    first = _character(drawn, max(begin, start - BEFORE_BYTES), start)
    last = _character(drawn, min(stop, first + SHOWN_BYTES), stop)
    text = "…" if first > begin else ""
    spans: list[tuple[int, int]] = []
    at = first
    # Further matches are looked for in the shown part only: the rest of a long line would cost as much again
    # as the search.
    until = min(stop, last)
    others = (
        match.span()
        for match in islice(pattern.finditer(drawn, min(first_match[1], until), until), MOST_SPANS - 1)
    )
    for left, match_end in chain([first_match], others):
        right = min(match_end, last)
        if left >= last:
            break
        if left >= right:
            continue
        text += _seen(drawn[at:left])
        marked = _seen(drawn[left:right])
        spans.append((len(text), len(text) + len(marked)))
        text += marked
        at = right
    return text + _seen(drawn[at:last]) + ("…" if last < stop else ""), spans


def _character(data: bytes | bytearray, position: int, stop: int) -> int:
    """`position`, or the first one after it that is not inside a UTF-8 character."""
    while position < stop and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def _seen(data: bytes | bytearray) -> str:
    return INVISIBLE.sub("", data.decode("utf-8", "replace"))
