from __future__ import annotations

from jobs.redaction import MASK, mask


def test_a_value_is_gone_wherever_it_stands() -> None:
    assert mask("a thr_secret and thr_secret", ["thr_secret"]) == f"a {MASK} and {MASK}"


def test_of_a_value_inside_another_no_rest_is_left() -> None:
    assert mask("abcd-efgh", ["abcd", "abcd-efgh"]) == MASK


def test_very_short_values_leave_words_alone() -> None:
    assert mask("a cat", ["a", ""]) == "a cat"
