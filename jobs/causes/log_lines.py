"""The end of a log as readable lines: without colours and overwritten progress bars, limited in number and
length. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINES = 4000
MAX_LINE_LENGTH = 2000
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
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
        result.append(LogLine(at, plain_text(piece)))
        at += len(piece)
    return result


def plain_text(line: bytes) -> str:
    # A carriage return goes back to the start of the line: a terminal shows what was written last.
    drawn = line.rstrip(b"\r\n").rsplit(b"\r", 1)[-1]
    # Cut before the expression runs over it: a line may be hundreds of megabytes long.
    text = drawn[: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")
    return _ESCAPES.sub("", text)[:MAX_LINE_LENGTH]


def last_line(tail: bytes) -> str:
    """Returns the last line that is not blank, or ""."""
    return next((line.text.strip() for line in reversed(parse_lines(tail, 0)) if line.text.strip()), "")
