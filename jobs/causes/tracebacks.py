"""Finds Python tracebacks in the lines of a log and groups those that belong together. Pure; linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.causes.log_lines import LogLine

START = "Traceback (most recent call last)"
# What CPython and torch.multiprocessing print between two tracebacks of one failure.
JOINTS = (
    "During handling of the above exception",
    "The above exception was the direct cause",
    "terminated with the following error:",
)
# Lines right before a traceback that did not end the process.
IGNORED = ("Exception ignored in", "--- Logging error ---", "Error in atexit")
# The line right before the traceback of a thread: it ends only the thread, and the process may fail later.
IN_THREAD = "Exception in thread"
# Exceptions that a launcher raises because one of its processes died; they are never the cause.
LAUNCHER_EXCEPTIONS = (
    "ChildFailedError",
    "ProcessRaisedException",
    "ProcessExitedException",
    "SignalException",
)
MAX_MESSAGE_LINES = 12
MAX_LINES_BETWEEN = 8
_PREFIX = re.compile(r"(\[[^\]\s]{1,40}\]:) ?")
# The margin of exception groups (PEP 654).
_MARGIN = re.compile(r"[ +|-]{1,40}[|+] ?")
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]{0,150})(?::\s?(.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class Traceback:
    """The lines from `first` to `last` (exclusive). `prefix`: the start of each of them, such as `[rank1]:`.

    `exception`: type and message in one line, or "" if the log ends before it. `message`: all lines from the
    one that names the type on."""

    first: int
    last: int
    prefix: str
    exception: str
    message: tuple[str, ...] = ()
    is_ignored: bool = False
    is_in_thread: bool = False

    @property
    def type(self) -> str:
        match = _EXCEPTION.match(self.exception)
        return match[1] if match else ""

    @property
    def is_from_launcher(self) -> bool:
        return self.type.rpartition(".")[2] in LAUNCHER_EXCEPTIONS


# Tracebacks of one failure in the order in which they were raised.
Chain = tuple[Traceback, ...]


def find_chains(lines: Sequence[LogLine]) -> list[Chain]:
    """Returns every failure that has a traceback, in the order of the log. Lines of several processes may be
    mixed."""
    result: list[Chain] = []
    # Lines of several processes alternate, so each process's lines are read as a text of their own.
    for prefix, places in _by_writer(lines).items():
        own = [split_prefix(lines[place].text)[1] for place in places]
        result += [tuple(_relocate(item, places, prefix) for item in chain) for chain in _chains(own)]
    return sorted(result, key=lambda chain: chain[0].first)


def split_prefix(text: str) -> tuple[str, str]:
    """Returns the prefix that torch and others put before every line of a process (`[rank1]:`), or "", and
    the rest of the line."""
    match = _PREFIX.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


def _by_writer(lines: Sequence[LogLine]) -> dict[str, list[int]]:
    """Returns prefix -> indexes of its lines, for prefixes with a traceback only."""
    places: dict[str, list[int]] = {}
    prefixes = set()
    for place, line in enumerate(lines):
        prefix = split_prefix(line.text)[0]
        places.setdefault(prefix, []).append(place)
        if START in line.text:
            prefixes.add(prefix)
    return {prefix: indexes for prefix, indexes in places.items() if prefix in prefixes}


def _relocate(item: Traceback, places: Sequence[int], prefix: str) -> Traceback:
    return replace(item, first=places[item.first], last=places[item.last - 1] + 1, prefix=prefix)


def _chains(lines: Sequence[str]) -> list[list[Traceback]]:
    result: list[list[Traceback]] = []
    for start in (index for index, line in enumerate(lines) if START in line):
        item = _traceback(lines, start)
        if result and _is_joined(lines, result[-1][-1], item):
            result[-1].append(item)
        else:
            result.append([item])
    return result


def _traceback(lines: Sequence[str], start: int) -> Traceback:
    heading = lines[start - 1] if start else ""
    marks = heading.startswith(IGNORED), heading.startswith(IN_THREAD)
    margin = _margin(lines[start])
    at = start + 1
    while at < len(lines) and _is_frame(_body(lines[at], margin)):
        at += 1
    # The log ends within the frames, or the traceback was interrupted by another one.
    if at == len(lines) or START in lines[at]:
        return Traceback(start, at, "", "", (), *marks)
    message = [_body(lines[at], margin).strip()]
    while at + len(message) < len(lines) and len(message) < MAX_MESSAGE_LINES:
        more = _body(lines[at + len(message)], margin)
        if not _continues(more, message):
            break
        message.append(more.strip())
    return Traceback(start, at + len(message), "", _exception_line(message), tuple(message), *marks)


def _margin(text: str) -> bool:
    """Returns whether the traceback is part of an exception group, whose lines all have a margin."""
    return _MARGIN.match(text) is not None


def _body(text: str, margin: bool) -> str:
    return _MARGIN.sub("", text, count=1) if margin else text


def _is_frame(body: str) -> bool:
    return (body[:1] in (" ", "\t") or not body.strip()) and START not in body


def _continues(body: str, message: Sequence[str]) -> bool:
    """Returns whether the line continues the message: an indented line, or one right after a heading."""
    if not body.strip() or START in body or any(joint in body for joint in JOINTS):
        return False
    return body[:1] in (" ", "\t", "}") or message[-1].endswith((":", "{", "=", "MPI library"))


def _exception_line(message: Sequence[str]) -> str:
    """Returns the line that names the error, together with the next one if the first is only a heading."""
    first = message[0]
    return f"{first} {message[1]}" if len(message) > 1 and first.endswith(":") else first


def _is_joined(lines: Sequence[str], before: Traceback, item: Traceback) -> bool:
    if not before.exception:
        return False
    # PyTorch repeats a worker's traceback in the message of its own exception, and an exception group
    # contains those of its members.
    if "Original Traceback" in lines[item.first] or _margin(lines[item.first]):
        return item.first - before.last <= 4
    between = [text for text in lines[before.last : item.first][:MAX_LINES_BETWEEN] if text.strip()]
    return item.first - before.last < MAX_LINES_BETWEEN and any(
        joint in text for text in between for joint in JOINTS
    )
