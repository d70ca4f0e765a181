"""The end of a log as readable lines: without colours and overwritten progress bars, limited in number and
length. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINES = 4000
MAX_LINE_LENGTH = 2000
# The beginning of the line with which Python begins a traceback.
TRACEBACK = b"Traceback (most recent call last)"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
# What torch and others put before every line of a process.
_PREFIX = re.compile(rb"\[[^\]\s]{1,40}\]: ?\Z")
MAX_PREFIX_LENGTH = 45
# CSI sequences (colours, cursor), OSC sequences (titles, links) and the short escapes of ECMA-48.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+#%].|.)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log. `offset`: of its first byte. `text`: as a terminal finally shows it."""

    offset: int
    text: str


def parse_lines(tail: bytes, offset: int) -> list[LogLine]:
    """Returns the last lines of `tail`, which begins at `offset` of the log."""
    # Of a log that ends with many short lines only the last ones count, as of a terminal that scrolls.
    pieces = _LINE.findall(tail)[-MAX_LINES:]
    at = offset + len(tail) - sum(len(piece) for piece in pieces)
    result = []
    for piece in pieces:
        heading = _heading(piece)
        result.append(LogLine(at + heading, plain_text(piece[heading:])))
        at += len(piece)
    return result


def _heading(line: bytes) -> int:
    """Returns where a traceback begins behind a progress bar that has not ended its line, else 0."""
    at = line.rfind(TRACEBACK)
    if at <= 0:
        return 0
    prefix = _PREFIX.search(line, max(0, at - MAX_PREFIX_LENGTH), at)
    begin = prefix.start() if prefix else at
    # Where the line is short and nothing is drawn over, a terminal shows all of it.
    return begin if begin > MAX_LINE_LENGTH or b"\r" in line[:begin] else 0


def plain_text(line: bytes) -> str:
    # A carriage return goes back to the start of the line: a terminal shows what was written last.
    drawn = line.rstrip(b"\r\n").rsplit(b"\r", 1)[-1]
    # Cut before the expression runs over it: a line may be hundreds of megabytes long.
    text = drawn[: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")
    return _ESCAPES.sub("", text)[:MAX_LINE_LENGTH]


def last_line(tail: bytes) -> str:
    """Returns the last line that is not blank, or ""."""
    return next((line.text.strip() for line in reversed(parse_lines(tail, 0)) if line.text.strip()), "")
