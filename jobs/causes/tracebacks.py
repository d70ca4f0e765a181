"""Python's tracebacks in the lines of a log, and which of them belong together; pure and linear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.causes.log_lines import Line

START = "Traceback (most recent call last)"
JOINTS = (
    "During handling of the above exception",
    "The above exception was the direct cause",
    "terminated with the following error:",
)
IGNORED = ("Exception ignored in", "--- Logging error ---", "Error in atexit", "Exception in thread")
"""What stands above a traceback that did not end the process."""
LAUNCHERS_OWN = ("ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "SignalException")
"""What a launcher inside the log raises because a process of it died: true, but not the cause."""
LONGEST_MESSAGE = 12
MOST_BETWEEN = 8
_PREFIX = re.compile(r"(\[[^\]\s]{1,40}\]:) ?")
_MARGIN = re.compile(r"[ +|-]{1,40}[|+] ?")
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]{0,150})(?::\s?(.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class Traceback:
    """`first` to `last` (exclusive) of the lines. `prefix` stands before each of them (`[rank1]:`).

    `exception` names type and message, "" where the log ends before it. `message` is what follows the type,
    whole."""

    first: int
    last: int
    prefix: str
    exception: str
    message: tuple[str, ...] = ()
    is_ignored: bool = False

    @property
    def type(self) -> str:
        found = _EXCEPTION.match(self.exception)
        return found[1] if found else ""

    @property
    def is_launchers_own(self) -> bool:
        return self.type.rpartition(".")[2] in LAUNCHERS_OWN


Chain = tuple[Traceback, ...]
"""Tracebacks of one failure, the root first and what was raised last at the end."""


def chains(lines: Sequence[Line]) -> list[Chain]:
    """Every failure that is told with a traceback, in the order of the log. Lines of several writers may be
    mixed."""
    found: list[Chain] = []
    for prefix, places in _by_writer(lines).items():
        own = [split(lines[place].text)[1] for place in places]
        found += [tuple(_placed(item, places, prefix) for item in chain) for chain in _chains(own)]
    return sorted(found, key=lambda chain: chain[0].first)


def split(text: str) -> tuple[str, str]:
    """The prefix that torch and others put before every line of a process (`[rank1]:`), or "", and the rest
    of the line."""
    found = _PREFIX.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def _by_writer(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Prefix -> places of its lines; only of those who tell a traceback."""
    places: dict[str, list[int]] = {}
    tellers = set()
    for place, line in enumerate(lines):
        prefix = split(line.text)[0]
        places.setdefault(prefix, []).append(place)
        if START in line.text:
            tellers.add(prefix)
    return {prefix: found for prefix, found in places.items() if prefix in tellers}


def _placed(item: Traceback, places: Sequence[int], prefix: str) -> Traceback:
    return replace(item, first=places[item.first], last=places[item.last - 1] + 1, prefix=prefix)


def _chains(lines: Sequence[str]) -> list[list[Traceback]]:
    found: list[list[Traceback]] = []
    for start in (index for index, line in enumerate(lines) if START in line):
        item = _traceback(lines, start)
        if found and _is_joined(lines, found[-1][-1], item):
            found[-1].append(item)
        else:
            found.append([item])
    return found


def _traceback(lines: Sequence[str], start: int) -> Traceback:
    is_ignored = start > 0 and lines[start - 1].startswith(IGNORED)
    margin = _margin(lines[start])
    at = start + 1
    while at < len(lines) and _is_frame(_body(lines[at], margin)):
        at += 1
    if at == len(lines) or START in lines[at]:
        return Traceback(start, at, "", "", is_ignored=is_ignored)
    message = [_body(lines[at], margin).strip()]
    while at + len(message) < len(lines) and len(message) < LONGEST_MESSAGE:
        more = _body(lines[at + len(message)], margin)
        if not _continues(more, message):
            break
        message.append(more.strip())
    return Traceback(start, at + len(message), "", _named(message), tuple(message), is_ignored)


def _margin(text: str) -> bool:
    """Whether the traceback is drawn inside an exception group, whose lines all have a margin."""
    return _MARGIN.match(text) is not None


def _body(text: str, margin: bool) -> str:
    return _MARGIN.sub("", text, count=1) if margin else text


def _is_frame(body: str) -> bool:
    return (body[:1] in (" ", "\t") or not body.strip()) and START not in body


def _continues(body: str, message: Sequence[str]) -> bool:
    """A message of several lines: indented ones, and what comes right after a first line that is only a
    heading."""
    if not body.strip() or START in body or any(joint in body for joint in JOINTS):
        return False
    return body[:1] in (" ", "\t", "}") or message[-1].endswith((":", "{", "=", "MPI library"))


def _named(message: Sequence[str]) -> str:
    """The line that names the error; with the next one where the first is a mere heading."""
    first = message[0]
    return f"{first} {message[1]}" if len(message) > 1 and first.endswith(":") else first


def _is_joined(lines: Sequence[str], before: Traceback, item: Traceback) -> bool:
    if not before.exception:
        return False
    if "Original Traceback" in lines[item.first] or _margin(lines[item.first]):
        return item.first - before.last <= 4
    between = [text for text in lines[before.last : item.first][:MOST_BETWEEN] if text.strip()]
    return item.first - before.last < MOST_BETWEEN and any(
        joint in text for text in between for joint in JOINTS
    )
