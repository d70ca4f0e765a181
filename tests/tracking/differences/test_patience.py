from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tracking.comparison.differences import hunks
from tracking.comparison.differences.patience import find_matches


def rebuilt(old: list[str], new: list[str]) -> list[str]:
    """The new text out of the old one and what lies between the matches."""
    result, at = [], 0
    for match in find_matches(old, new):
        result += new[at : match.new] + old[match.old : match.old + match.size]
        at = match.new + match.size
    return result + new[at:]


class TestMatches:
    @pytest.mark.parametrize("seed", range(60))
    def test_are_equal_lines_in_one_order_on_both_sides(self, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311
        words = [str(number) for number in range(chance.choice([2, 6, 40, 400]))]
        old = [chance.choice(words) for _ in range(chance.randrange(120))]
        new = [line for line in old if chance.random() > 0.2]
        for _ in range(chance.randrange(20)):
            new.insert(chance.randrange(len(new) + 1), chance.choice(words))
        result = find_matches(old, new)
        for match in result:
            assert old[match.old : match.old + match.size] == new[match.new : match.new + match.size]
        for one, other in pairwise(result):
            assert one.old + one.size <= other.old
            assert one.new + one.size <= other.new
        assert rebuilt(old, new) == new

    def test_of_equal_texts_are_one(self) -> None:
        lines = ["a", "", "b", ""]
        assert [tuple(match) for match in find_matches(lines, lines)] == [(0, 0, 4)]

    def test_keep_a_function_whole_where_another_is_put_before_it(self) -> None:
        old = ["def f():", "    return 1", ""]
        new = ["def g():", "    return 2", "", "def f():", "    return 1", ""]
        assert [tuple(match) for match in find_matches(old, new)] == [(0, 3, 3)]

    def test_of_texts_that_share_only_common_lines_are_found_without_comparing_each_with_each(self) -> None:
        old, new = ["x", "y"] * 10_000, ["y", "x", "x"] * 7_000
        assert rebuilt(old, new) == new


class TestHunks:
    def test_show_what_changed_with_three_lines_around(self) -> None:
        old = "".join(f"{number}\n" for number in range(1, 21))
        result = hunks.diff_texts(old, old.replace("\n10\n", "\nten\n"), max_lines=100)
        assert (result.added, result.removed, result.omitted) == (1, 1, 0)
        [hunk] = result.hunks
        assert [line.kind + line.text for line in hunk.lines] == [
            " 7",
            " 8",
            " 9",
            "-10",
            "+ten",
            " 11",
            " 12",
            " 13",
        ]
        assert (hunk.old, hunk.lines[3].old, hunk.lines[4].new, hunk.lines[-1].new) == (7, 10, 10, 13)

    def test_numbers_behind_a_change_are_those_of_each_side(self) -> None:
        result = hunks.diff_texts("a\nb\nc\n", "a\nx\ny\nb\nc\n", max_lines=100)
        assert [(line.kind, line.old, line.new) for line in result.hunks[0].lines] == [
            (" ", 1, 1),
            ("+", None, 2),
            ("+", None, 3),
            (" ", 2, 4),
            (" ", 3, 5),
        ]

    def test_that_are_far_from_each_other_are_apart(self) -> None:
        old = "".join(f"{number}\n" for number in range(40))
        new = old.replace("\n3\n", "\nthree\n").replace("\n30\n", "\nthirty\n")
        assert [hunk.old for hunk in hunks.diff_texts(old, new, max_lines=100).hunks] == [1, 28]

    def test_of_a_new_and_of_a_removed_file_are_all_its_lines(self) -> None:
        assert [line.kind for line in hunks.diff_texts("", "a\nb\n", max_lines=9).hunks[0].lines] == [
            "+",
            "+",
        ]
        assert [line.kind for line in hunks.diff_texts("a\nb\n", "", max_lines=9).hunks[0].lines] == [
            "-",
            "-",
        ]

    def test_tell_a_last_line_that_is_not_ended(self) -> None:
        result = hunks.diff_texts("a\n", "a", max_lines=9)
        assert [line.text for line in result.hunks[0].lines] == ["a", "a\n\\ no newline at the end"]

    def test_are_cut_where_there_is_no_room_for_more(self) -> None:
        result = hunks.diff_texts("", "line\n" * 100, max_lines=10)
        assert (len(result.hunks[0].lines), result.omitted, result.added) == (10, 90, 100)

    def test_are_left_out_as_a_whole_where_there_is_no_room_at_all(self) -> None:
        old = "".join(f"{number}\n" for number in range(40))
        new = old.replace("\n3\n", "\nthree\n").replace("\n30\n", "\nthirty\n")
        result = hunks.diff_texts(old, new, max_lines=8)
        assert [(hunk.old, len(hunk.lines)) for hunk in result.hunks] == [(1, 8)]
        assert (result.omitted, result.added, result.removed) == (8, 2, 2)

    def test_cut_a_line_that_no_one_would_read(self) -> None:
        result = hunks.diff_texts("", "x" * 10_000 + "\n", max_lines=10)
        assert len(result.hunks[0].lines[0].text) < 600
