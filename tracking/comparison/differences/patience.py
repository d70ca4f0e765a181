"""What two texts have in common, line by line, by the lines that are unique in both: moved and repeated lines
do not mislead it, and its time is bounded where that of `difflib` is not. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MAX_PRODUCT = 200 * 200
"""Lines times lines: so much without a unique line in common may be compared each with each."""


class Match(NamedTuple):
    """`size` equal lines, from `old` and from `new` on."""

    old: int
    new: int
    size: int


class _TextRange(NamedTuple):
    old: int
    old_end: int
    new: int
    new_end: int


def find_matches(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """In their order; what lies between two of them was replaced."""
    found: list[Match] = []
    parts = [_TextRange(0, len(old), 0, len(new))]
    while parts:
        part, same = _trim(old, new, parts.pop())
        found += same
        if part.old == part.old_end or part.new == part.new_end:
            continue
        anchors = _anchors(old, new, part)
        if anchors:
            parts += _parts_between(part, anchors)
        elif (part.old_end - part.old) * (part.new_end - part.new) <= MAX_PRODUCT:
            found += _match_exhaustively(old, new, part)
    return _merge_adjacent(sorted(match for match in found if match.size))


def _trim(old: Sequence[str], new: Sequence[str], part: _TextRange) -> tuple[_TextRange, list[Match]]:
    """Without what it begins and ends with on both sides."""
    first, limit = 0, min(part.old_end - part.old, part.new_end - part.new)
    while first < limit and old[part.old + first] == new[part.new + first]:
        first += 1
    last = 0
    while last < limit - first and old[part.old_end - 1 - last] == new[part.new_end - 1 - last]:
        last += 1
    rest = _TextRange(part.old + first, part.old_end - last, part.new + first, part.new_end - last)
    return rest, [Match(part.old, part.new, first), Match(rest.old_end, rest.new_end, last)]


def _anchors(old: Sequence[str], new: Sequence[str], part: _TextRange) -> list[tuple[int, int]]:
    """Lines that stand once on either side, as many as keep their order."""
    here, there = _unique_lines(old, part.old, part.old_end), _unique_lines(new, part.new, part.new_end)
    pairs = [(at, there[line]) for line, at in here.items() if line in there]
    return _longest_increasing(pairs)


def _unique_lines(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    places: dict[str, int] = {}
    repeated: set[str] = set()
    for at in range(start, end):
        if lines[at] in places:
            repeated.add(lines[at])
        places[lines[at]] = at
    return {line: at for line, at in places.items() if line not in repeated}


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of pairs in the order of their first items, the most whose second items rise too (patience sorting)."""
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for place, (_, new) in enumerate(pairs):
        pile = bisect_left(tops, new)
        previous.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [new]
        ends[pile : pile + 1] = [place]
    found = []
    place = ends[-1] if ends else -1
    while place >= 0:
        found.append(pairs[place])
        place = previous[place]
    return found[::-1]


def _parts_between(part: _TextRange, anchors: Sequence[tuple[int, int]]) -> Iterator[_TextRange]:
    """From each anchor to the next; an anchor begins the part behind it, whose trimming finds it."""
    starts = [(part.old, part.new), *anchors]
    ends = [*anchors, (part.old_end, part.new_end)]
    for (old, new), (old_end, new_end) in zip(starts, ends, strict=True):
        yield _TextRange(old, old_end, new, new_end)


def _match_exhaustively(old: Sequence[str], new: Sequence[str], part: _TextRange) -> list[Match]:
    blocks = SequenceMatcher(None, old[part.old : part.old_end], new[part.new : part.new_end], autojunk=False)
    return [
        Match(part.old + block.a, part.new + block.b, block.size) for block in blocks.get_matching_blocks()
    ]


def _merge_adjacent(found: Sequence[Match]) -> list[Match]:
    joined: list[Match] = []
    for match in found:
        last = joined[-1] if joined else None
        if last is not None and (last.old + last.size, last.new + last.size) == (match.old, match.new):
            joined[-1] = Match(last.old, last.new, last.size + match.size)
        else:
            joined.append(match)
    return joined
