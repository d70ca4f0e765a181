"""The few lines of a failed rank's log that tell why; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LINE = re.compile(rb"[^\n]*\n|[^\n]+")
START = b"Traceback (most recent call last)"
UNREAD = ("SyntaxError: ", "IndentationError: ", "TabError: ")
"""What Python says, without a traceback, of a script that it could not even read."""
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+#%].|.)")
PREFIX = re.compile(r"^(\[[^\]\s]{1,40}\]:?\s?)")
LAUNCHERS_OWN = ("ChildFailedError", "torch.multiprocessing.spawn.ProcessRaisedException")
"""What a launcher inside the log raises because a rank of it died: true, but not the cause."""
LONGEST_QUOTE = 40
LAST_LINES = 15


@dataclass(frozen=True)
class Excerpt:
    """`offset`: where it begins in the log. `exception`: the line that names the error, where a traceback was found."""

    text: str
    offset: int
    exception: str = ""


def excerpt(tail: bytes, offset: int) -> Excerpt | None:
    """The last traceback in `tail` (which begins at `offset` of the log), else its last lines; None for an empty log."""
    lines = LINE.findall(tail)
    starts = [index for index, line in enumerate(lines) if START in line]
    found = [_traceback(lines, start) for start in starts]
    own = [item for item in found if not any(name in item[2] for name in LAUNCHERS_OWN)]
    if found and not own:
        own = _unread(lines[: starts[0]])
    if found:
        first, last, exception = (own or found)[-1]
        return Excerpt(_quote(lines[first:last]), offset + _bytes(lines[:first]), exception)
    last_line = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].strip()), None)
    if last_line is None:
        return None
    first = max(0, last_line + 1 - LAST_LINES)
    said = _plain(lines[last_line]).strip()
    exception = said if said.startswith(UNREAD) else ""
    return Excerpt(_quote(lines[first : last_line + 1]), offset + _bytes(lines[:first]), exception)


def _traceback(lines: Sequence[bytes], start: int) -> tuple[int, int, str]:
    """First line, line after the last, and the exception of the traceback that begins at `start`."""
    prefix = _prefix(_plain(lines[start]))
    at = start + 1
    while at < len(lines) and (_body(lines[at], prefix)[:1] in (" ", "\t") or not _body(lines[at], prefix).strip()):
        at += 1
    if at == len(lines):
        return start, at, ""
    exception = _body(lines[at], prefix).strip()
    end = at + 1
    # A message may have several lines: they end at an empty one, or where something else begins.
    while end < len(lines) and end - at < 12 and _continues(lines[end], prefix):
        end += 1
    return start, end, exception


def _unread(lines: Sequence[bytes]) -> list[tuple[int, int, str]]:
    """Like `_traceback`, for the last script that Python could not read: `File …`, the line, a caret, the error."""
    ends = [index for index, line in enumerate(lines) if _plain(line).startswith(UNREAD)]
    if not ends:
        return []
    first = last = ends[-1]
    while first and last - first < LAST_LINES and _plain(lines[first - 1]).startswith(" "):
        first -= 1
    return [(first, last + 1, _plain(lines[last]).strip())]


def _continues(line: bytes, prefix: str) -> bool:
    body = _body(line, prefix)
    return bool(body.strip()) and START.decode() not in body and body[:1] in (" ", "\t")


def _prefix(line: str) -> str:
    """`[rank1]: ` and the like, which torch puts before every line of a traceback."""
    found = PREFIX.match(line)
    return found[1] if found else ""


def _body(line: bytes, prefix: str) -> str:
    return _plain(line).removeprefix(prefix)


def _plain(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return ESCAPES.sub("", text.rsplit("\r", 1)[-1])


def _quote(lines: Sequence[bytes]) -> str:
    shown = [_plain(line) for line in lines]
    if len(shown) > LONGEST_QUOTE:
        left_out = len(shown) - LONGEST_QUOTE
        shown = [*shown[:6], f"… {left_out} lines …", *shown[-(LONGEST_QUOTE - 6) :]]
    return "\n".join(line[:1000] for line in shown)


def _bytes(lines: Sequence[bytes]) -> int:
    return sum(len(line) for line in lines)
