"""Slurm's short form of many node names: `n[1-3,7],login`."""

from __future__ import annotations

import re
from itertools import product

MAX_NAMES = 65536
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
# Pieces outside of brackets, and brackets.
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")


def expand_hostlist(text: str, max_names: int = MAX_NAMES) -> list[str]:
    """Returns the names in the order of the list. Raises ValueError if it cannot be read or is too long."""
    names: list[str] = []
    for word in _split(text):
        names += _expand_word(word, max_names - len(names))
    return names


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    words, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and not depth:
            words.append(text[start:index])
            start = index + 1
        if depth not in (0, 1):
            raise ValueError(f"brackets do not match in {text[:80]!r}")
    if depth:
        raise ValueError(f"a bracket is open in {text[:80]!r}")
    return [word for word in (*words, text[start:]) if word]


def _expand_word(word: str, max_names: int) -> list[str]:
    pieces = []
    count = 1
    for match in _PIECE.finditer(word):
        ranges, plain = match.groups()
        choices = [plain] if ranges is None else _numbers(ranges, max_names)
        count *= len(choices)
        if count > max_names:
            raise ValueError(f"more than {max_names} names in {word[:80]!r}")
        pieces.append(choices)
    return ["".join(parts) for parts in product(*pieces)]


def _numbers(ranges: str, max_names: int) -> list[str]:
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part[:80]!r} is no range of numbers")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f"the range {part!r} goes down")
        if int(last) - int(first) >= max_names - len(numbers):
            raise ValueError(f"more than {max_names} names in {part!r}")
        # Leading zeros of the first number give the width: [08-11] is 08, 09, 10, 11.
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers
