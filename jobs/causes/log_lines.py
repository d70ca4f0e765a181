"""The end of a log as lines that can be read: no colours, no overdrawn progress bars, bounded in number and
length; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINES = 4000
MAX_LINE_LENGTH = 2000
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+#%].|.)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """`offset`: of its first byte in the log. `text`: as a terminal would show it in the end."""

    offset: int
    text: str


def parse_lines(tail: bytes, offset: int) -> list[LogLine]:
    """The last lines of `tail`, which begins at `offset` of the log."""
    pieces = _LINE.findall(tail)[-MAX_LINES:]
    at = offset + len(tail) - sum(len(piece) for piece in pieces)
    result = []
    for piece in pieces:
        result.append(LogLine(at, plain_text(piece)))
        at += len(piece)
    return result


def plain_text(line: bytes) -> str:
    drawn = line.rstrip(b"\r\n").rsplit(b"\r", 1)[-1]
    text = drawn[: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")
    return _ESCAPES.sub("", text)[:MAX_LINE_LENGTH]


def last_line(tail: bytes) -> str:
    """The last line that says something; "" where none does."""
    return next((line.text.strip() for line in reversed(parse_lines(tail, 0)) if line.text.strip()), "")
