"""LIKE on text at hand, without a database."""

from __future__ import annotations

import re
from itertools import product

import pytest

from tracking.search.patterns import matches


@pytest.mark.parametrize("any_case", [False, True])
def test_matches_what_a_regular_expression_would(any_case: bool) -> None:
    signs, flags = {"%": ".*", "_": "."}, re.DOTALL | (re.IGNORECASE if any_case else 0)
    texts = ["".join(letters) for length in range(4) for letters in product("aB\n", repeat=length)]
    for pattern in ("".join(letters) for length in range(5) for letters in product("ab%_", repeat=length)):
        wanted = re.compile("".join(signs.get(sign, sign) for sign in pattern), flags)
        for text in texts:
            assert matches(pattern, text, any_case=any_case) == (wanted.fullmatch(text) is not None), (
                pattern,
                text,
            )


@pytest.mark.parametrize(
    ("pattern", "text", "same"), [("50\\%", "50%", True), ("50\\%", "500", False), ("a\\_b", "acb", False)]
)
def test_a_backslash_takes_the_meaning_of_the_sign_after_it(pattern: str, text: str, same: bool) -> None:
    assert matches(pattern, text) is same


@pytest.mark.parametrize(
    ("pattern", "text"), [("%a" * 1000 + "%b", "a" * 100_000), ("%" * 10_000 + "X", "Completed")]
)
def test_no_pattern_holds_up_the_server(pattern: str, text: str) -> None:
    """By a regular expression of the whole, each of these takes longer than the universe is old."""
    assert not matches(pattern, text)
