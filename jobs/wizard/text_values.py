"""What people type, and the values it stands for: argument lists and spans of time. Pure, with inverses."""

from __future__ import annotations

import re
import shlex

SECONDS = {"d": 86400, "h": 3600, "m": 60, "min": 60, "s": 1}
SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(d|h|min|m|s)?\s*", re.IGNORECASE)
SAFE = re.compile(r"[^\s'\"\\]+\Z")


def split_arguments(text: str) -> tuple[str, ...]:
    """`--epochs 5 --name 'two words'` over any number of lines -> a list. Nothing is expanded.

    Raises ValueError with a sentence.
    """
    try:
        return tuple(shlex.split(text.replace("\r\n", "\n")))
    except ValueError as error:
        if "escaped" in str(error):
            raise ValueError("ends with a lone backslash; write \\\\ for the character itself") from error
        raise ValueError(
            "has a quotation mark that is not closed; close it, or write \\' for the character itself"
        ) from error


def join_arguments(arguments: tuple[str, ...]) -> str:
    """The inverse: one line for each flag with its values, quoted only where needed."""
    lines: list[list[str]] = [[]]
    for argument in arguments:
        if argument.startswith("-") and not argument[1:2].isdigit() and lines[-1]:
            lines.append([])
        lines[-1].append(quoted(argument))
    return "\n".join(" ".join(line) for line in lines)


def quoted(argument: str) -> str:
    """The argument as one would type it."""
    return argument if SAFE.match(argument) else shlex.quote(argument)


def read_span(text: str) -> int | None:
    """`90`, `90 s`, `15 min`, `2h 30m`, `1.5 d` -> seconds; blank -> None. Raises ValueError with a
    sentence."""
    if not text.strip():
        return None
    total, at = 0.0, 0
    while at < len(text):
        found = SPAN.match(text, at)
        if found is None:
            raise ValueError("is not a span of time; write for example '45 min', '2h 30m' or '1d'")
        total += float(found[1]) * SECONDS[(found[2] or "s").lower()]
        at = found.end()
    if total < 1 or total != int(total):
        raise ValueError("must be at least a second, and whole seconds")
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
