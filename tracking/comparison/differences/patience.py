"""Patience diff: matches two texts by the lines that are unique in both. Moved and repeated lines do not
mislead it, and its time is bounded, unlike that of `difflib`. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

# Maximum product of line counts for an exhaustive comparison of parts without common unique lines.
MAX_PRODUCT = 200 * 200


class Match(NamedTuple):
    """`size` equal lines that start at index `old` and at index `new`."""

    old: int
    new: int
    size: int


class _TextRange(NamedTuple):
    old: int
    old_end: int
    new: int
    new_end: int


def find_matches(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Returns the matches in order; lines between two matches were replaced."""
    blocks: list[Match] = []
    parts = [_TextRange(0, len(old), 0, len(new))]
    while parts:
        part, same = _trim(old, new, parts.pop())
        blocks += same
        if part.old == part.old_end or part.new == part.new_end:
            continue
        anchors = _anchors(old, new, part)
        if anchors:
            parts += _parts_between(part, anchors)
        # Larger parts without a common unique line count as replaced: a comparison takes quadratic time.
        elif (part.old_end - part.old) * (part.new_end - part.new) <= MAX_PRODUCT:
            blocks += _match_exhaustively(old, new, part)
    # The stack yields the parts out of order.
    return _merge_adjacent(sorted(match for match in blocks if match.size))


def _trim(old: Sequence[str], new: Sequence[str], part: _TextRange) -> tuple[_TextRange, list[Match]]:
    """Returns the range without its common first and last lines, and the matches of those lines."""
    first, limit = 0, min(part.old_end - part.old, part.new_end - part.new)
    while first < limit and old[part.old + first] == new[part.new + first]:
        first += 1
    last = 0
    while last < limit - first and old[part.old_end - 1 - last] == new[part.new_end - 1 - last]:
        last += 1
    rest = _TextRange(part.old + first, part.old_end - last, part.new + first, part.new_end - last)
    return rest, [Match(part.old, part.new, first), Match(rest.old_end, rest.new_end, last)]


def _anchors(old: Sequence[str], new: Sequence[str], part: _TextRange) -> list[tuple[int, int]]:
    """Returns the longest sequence of lines that are unique on both sides and have the same order."""
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
    """Returns the longest subsequence with increasing second items, by patience sorting; first items increase
    already."""
    tops: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for place, (_, new) in enumerate(pairs):
        pile = bisect_left(tops, new)
        # Each item remembers the top of the pile to its left, so the result can be followed backwards from
        # the last.
        previous.append(ends[pile - 1] if pile else -1)
        # The slice assignment replaces the top of a pile or, at the end, starts a new pile.
        tops[pile : pile + 1] = [new]
        ends[pile : pile + 1] = [place]
    result = []
    place = ends[-1] if ends else -1
    while place >= 0:
        result.append(pairs[place])
        place = previous[place]
    return result[::-1]


def _parts_between(part: _TextRange, anchors: Sequence[tuple[int, int]]) -> Iterator[_TextRange]:
    """Yields the ranges between anchors; each anchor is the first line of the range after it, where `_trim`
    finds it."""
    starts = [(part.old, part.new), *anchors]
    ends = [*anchors, (part.old_end, part.new_end)]
    for (old, new), (old_end, new_end) in zip(starts, ends, strict=True):
        yield _TextRange(old, old_end, new, new_end)


def _match_exhaustively(old: Sequence[str], new: Sequence[str], part: _TextRange) -> list[Match]:
    # With autojunk difflib would ignore lines that occur often, such as closing brackets.
    blocks = SequenceMatcher(None, old[part.old : part.old_end], new[part.new : part.new_end], autojunk=False)
    return [
        Match(part.old + block.a, part.new + block.b, block.size) for block in blocks.get_matching_blocks()
    ]


def _merge_adjacent(blocks: Sequence[Match]) -> list[Match]:
    joined: list[Match] = []
    for match in blocks:
        last = joined[-1] if joined else None
        if last is not None and (last.old + last.size, last.new + last.size) == (match.old, match.new):
            joined[-1] = Match(last.old, last.new, last.size + match.size)
        else:
            joined.append(match)
    return joined
