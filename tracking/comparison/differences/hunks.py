"""The difference of two texts as hunks: removed and added lines with a few lines of context. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracking.comparison.differences.patience import Match, find_matches

CONTEXT_LINES = 3
MAX_LINE_LENGTH = 500


@dataclass(frozen=True)
class DiffLine:
    """`kind` is ` `, `-` or `+`; line numbers start at 1 and are None on the side without the line."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True)
class DiffHunk:
    """`old` and `new` are the numbers of the first line in the two texts."""

    old: int
    new: int
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class TextDiff:
    """The difference of two texts. `added` and `removed` count all changed lines; `omitted` counts the lines
    of hunks that are left out."""

    hunks: tuple[DiffHunk, ...]
    added: int
    removed: int
    omitted: int = 0


def diff_texts(old: str, new: str, *, max_lines: int) -> TextDiff:
    """Returns the difference of two texts, with at most `max_lines` lines in its hunks."""
    before, after = _lines(old), _lines(new)
    changes = _changes(find_matches(before, after), len(before), len(after))
    hunks = list(_hunks(before, after, changes))
    visible, count = [], 0
    for hunk in hunks:
        remaining = max_lines - count
        if remaining <= 0:
            break
        visible.append(DiffHunk(hunk.old, hunk.new, hunk.lines[:remaining]))
        count += len(visible[-1].lines)
    total = sum(len(hunk.lines) for hunk in hunks)
    added = sum(end - start for _, _, start, end in changes)
    removed = sum(end - start for start, end, _, _ in changes)
    return TextDiff(tuple(visible), added, removed, total - count)


def _lines(text: str) -> list[str]:
    """Splits the text into lines; a missing newline at the end is marked, as in `diff`."""
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    lines[-1] += "\n\\ no newline at the end"
    return lines


def _changes(same: Sequence[Match], old_end: int, new_end: int) -> list[tuple[int, int, int, int]]:
    """Returns the changes between the matches as (old start, old end, new start, new end)."""
    changes, old, new = [], 0, 0
    # The empty match at the end closes the last change.
    for match in [*same, Match(old_end, new_end, 0)]:
        if (old, new) != (match.old, match.new):
            changes.append((old, match.old, new, match.new))
        old, new = match.old + match.size, match.new + match.size
    return changes


def _hunks(
    old: Sequence[str], new: Sequence[str], changes: Sequence[tuple[int, int, int, int]]
) -> Iterator[DiffHunk]:
    """Yields the hunks; changes that are near each other share one."""
    group: list[tuple[int, int, int, int]] = []
    for change in changes:
        # Changes that are nearer than twice the context would show the lines between them twice.
        if group and change[0] - group[-1][1] > 2 * CONTEXT_LINES:
            yield _hunk(old, new, group)
            group = []
        group.append(change)
    if group:
        yield _hunk(old, new, group)


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[tuple[int, int, int, int]]) -> DiffHunk:
    before = min(CONTEXT_LINES, group[0][0])
    at_old, at_new = group[0][0] - before, group[0][2] - before
    lines: list[DiffLine] = []
    start = at_old
    for old_from, old_to, new_from, new_to in group:
        # Context lines are equal on both sides; their numbers differ by the lines added or removed before
        # them.
        lines += _context_lines(old, start, old_from, new_from - old_from)
        lines += [DiffLine("-", _truncate(old[place]), old=place + 1) for place in range(old_from, old_to)]
        lines += [DiffLine("+", _truncate(new[place]), new=place + 1) for place in range(new_from, new_to)]
        start = old_to
    lines += _context_lines(old, start, min(len(old), start + CONTEXT_LINES), group[-1][3] - group[-1][1])
    return DiffHunk(at_old + 1, at_new + 1, tuple(lines))


def _context_lines(old: Sequence[str], start: int, end: int, shift: int) -> list[DiffLine]:
    return [DiffLine(" ", _truncate(old[place]), place + 1, place + 1 + shift) for place in range(start, end)]


def _truncate(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]} …"
