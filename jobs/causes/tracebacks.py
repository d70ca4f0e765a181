"""Python's tracebacks in the lines of a log, and which of them belong together; pure and linear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.causes.lines import Line

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
_PREFIX = re.compile(r"\[[^\]\s]{1,40}\]:?\s?")
_MARGIN = re.compile(r"[ +|-]{1,40}[|+] ?")
_EXCEPTION = re.compile(r"([A-Za-z_][\w.]{0,150})(?::\s?(.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class Traceback:
    """`first` to `last` (exclusive) of the lines. `prefix` stands before each of them (`[rank1]: `).

    `exception` names type and message, "" where the log ends before it. `message` is what follows the type, whole.
    """

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
    """Every failure that is told with a traceback, in the order of the log."""
    starts = [index for index, line in enumerate(lines) if START in line.text]
    found: list[list[Traceback]] = []
    latest: dict[str, list[Traceback]] = {}
    for start in starts:
        item = _traceback(lines, start)
        before = latest.get(item.prefix)
        if before is not None and _is_joined(lines, before[-1], item):
            before.append(item)
            continue
        latest[item.prefix] = [item]
        found.append(latest[item.prefix])
    return [tuple(chain) for chain in found]


def _traceback(lines: Sequence[Line], start: int) -> Traceback:
    prefix, text = split(lines[start].text)
    above = split(lines[start - 1].text)[1] if start else ""
    is_ignored = above.startswith(IGNORED)
    margin = _margin(text)
    at = start + 1
    while at < len(lines) and (body := _body(lines[at].text, prefix, margin)) is not None and _is_frame(body):
        at += 1
    named = _body(lines[at].text, prefix, margin) if at < len(lines) else None
    if named is None or START in named:
        return Traceback(start, at, prefix, "", is_ignored=is_ignored)
    message = [named.strip()]
    while at + len(message) < len(lines) and len(message) < LONGEST_MESSAGE:
        more = _body(lines[at + len(message)].text, prefix, margin)
        if more is None or not _continues(more, message):
            break
        message.append(more.strip())
    return Traceback(start, at + len(message), prefix, _named(message), tuple(message), is_ignored)


def split(text: str) -> tuple[str, str]:
    """A line without the prefix that torch and others put before every line of a process, and that prefix."""
    found = _PREFIX.match(text)
    return (found[0], text[found.end() :]) if found else ("", text)


def _margin(text: str) -> bool:
    """Whether the traceback is drawn inside an exception group, whose lines all have a margin."""
    return _MARGIN.match(text) is not None


def _body(text: str, prefix: str, margin: bool) -> str | None:
    """The line as Python wrote it; None where another process (or nobody with that prefix) wrote it."""
    if prefix:
        if not text.startswith(prefix.rstrip()):
            return None
        text = text[len(prefix) :]
    elif _PREFIX.match(text) and text.startswith("[rank"):
        return None
    return _MARGIN.sub("", text, count=1) if margin else text


def _is_frame(body: str) -> bool:
    return (body[:1] in (" ", "\t") or not body.strip()) and START not in body


def _continues(body: str, message: Sequence[str]) -> bool:
    """A message of several lines: indented ones, and what comes right after a first line that is only a heading."""
    if not body.strip() or START in body or any(joint in body for joint in JOINTS):
        return False
    return body[:1] in (" ", "\t", "}") or message[-1].endswith((":", "{", "=", "MPI library"))


def _named(message: Sequence[str]) -> str:
    """The line that names the error; with the next one where the first is a mere heading."""
    first = message[0]
    return f"{first} {message[1]}" if len(message) > 1 and first.endswith(":") else first


def _is_joined(lines: Sequence[Line], before: Traceback, item: Traceback) -> bool:
    if not before.exception:
        return False
    text = lines[item.first].text
    if "Original Traceback" in text or _margin(split(text)[1]):
        return item.first - before.last <= 4
    between = [line.text for line in lines[before.last : item.first] if line.text.strip()]
    return 0 < len(between) <= 4 and any(joint in text for text in between for joint in JOINTS)
