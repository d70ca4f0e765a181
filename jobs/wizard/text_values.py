"""Converts typed text to argument lists, time spans and sizes, and back. Pure."""

from __future__ import annotations

import re
import shlex

from trainhub_launch.scheduler.sizes import bytes_text, parse_bytes

SECONDS = {"d": 86400, "h": 3600, "m": 60, "min": 60, "s": 1}
# `min` is before `m`, which would otherwise match the first letter of it.
SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(d|h|min|m|s)?\s*", re.IGNORECASE)
SAFE = re.compile(r"[^\s'\"\\]+\Z")


def split_arguments(text: str) -> tuple[str, ...]:
    """Splits shell-like text of one or more lines, such as `--epochs 5 --name 'two words'`, into arguments.
    Expands nothing.

    Raises ValueError with a message for the user."""
    try:
        # `shlex` implements the quoting rules of a POSIX shell without variables and patterns.
        return tuple(shlex.split(text.replace("\r\n", "\n")))
    except ValueError as error:
        if "escaped" in str(error):
            raise ValueError("ends with a lone backslash; write \\\\ for the character itself") from error
        raise ValueError(
            "has a quotation mark that is not closed; close it, or write \\' for the character itself"
        ) from error


def join_arguments(arguments: tuple[str, ...]) -> str:
    """Returns text that `split_arguments` turns into these arguments: one line per flag with its values,
    quoted where necessary."""
    lines: list[list[str]] = [[]]
    for argument in arguments:
        # A number such as -5 is a value of the flag before it.
        if argument.startswith("-") and not argument[1:2].isdigit() and lines[-1]:
            lines.append([])
        lines[-1].append(quoted(argument))
    return "\n".join(" ".join(line) for line in lines)


def quoted(argument: str) -> str:
    """Returns the argument as text for a command line, quoted if necessary."""
    return argument if SAFE.match(argument) else shlex.quote(argument)


def read_span(text: str) -> int | None:
    """Returns the seconds of a text such as `90`, `90 s`, `15 min`, `2h 30m` or `1.5 d`; None for blank text.

    Raises ValueError with a message for the user."""
    if not text.strip():
        return None
    total, at = 0.0, 0
    while at < len(text):
        match = SPAN.match(text, at)
        if match is None:
            raise ValueError("is not a duration; write for example '45 min', '2h 30m' or '1d'")
        total += float(match[1]) * SECONDS[(match[2] or "s").lower()]
        at = match.end()
    # Fractions are allowed if the sum is whole: 1.5 min is 90 s, 0.5 s is an error.
    if total < 1 or total != int(total):
        raise ValueError("must be a whole number of seconds, at least 1")
    return int(total)


def write_span(seconds: int | None) -> str:
    if seconds is None:
        return ""
    words = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, SECONDS[unit])
        if count:
            words.append(f"{count}{unit}")
    return " ".join(words)


def write_size(size: int | None) -> str:
    """Returns a text that reads as exactly this number of bytes, "" for None."""
    if size is None:
        return ""
    text = bytes_text(size)
    return text if parse_bytes(text) == size else str(size)
