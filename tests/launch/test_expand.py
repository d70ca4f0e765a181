from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand, literal, references

ENV = {"RANK": "3", "MASTER_ADDR": "10.0.0.1", "A_b9": "x", "NESTED": "$RANK"}


class TestExpand:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("$RANK", "3"),
            ("${RANK}", "3"),
            ("--rank=$RANK.", "--rank=3."),
            ("${RANK}0", "30"),
            ("$A_b9-", "x-"),
            ("$MASTER_ADDR:$RANK", "10.0.0.1:3"),
            ("$$RANK", "$RANK"),
            ("$$$RANK", "$3"),
            ("$NESTED", "$RANK"),
        ],
    )
    def test_names_are_replaced_once(self, text: str, expected: str) -> None:
        assert expand(text, ENV) == expected

    @pytest.mark.parametrize(
        "text", ["", "$", "a$", "$1", "$ RANK", "$(id)", "${", "${RANK", "${}", "${RANK:-0}", "${1}", "$é"]
    )
    def test_a_dollar_that_starts_no_name_stays(self, text: str) -> None:
        assert expand(text, ENV) == text
        assert references(text) == ()

    def test_an_unknown_name_is_an_error_that_names_it(self) -> None:
        with pytest.raises(UnknownVariable, match=r"\$RNAK") as raised:
            expand("$RNAK", ENV)
        assert raised.value.name == "RNAK"

    @given(st.text())
    def test_a_literal_comes_back_as_it_was(self, text: str) -> None:
        assert expand(literal(text), {}) == text

    @given(st.text(alphabet="$${}aB_9 ;"))
    def test_whatever_is_referred_to_is_all_it_needs(self, text: str) -> None:
        names = references(text)
        assert len(set(names)) == len(names)
        expand(text, dict.fromkeys(names, "v"))


class TestReferences:
    def test_are_named_once_in_their_order(self) -> None:
        assert references("$B ${A} $B $$C") == ("B", "A")


class TestCost:
    def test_the_rank_wrapper_gets_it_without_the_slow_modules(self) -> None:
        program = (
            "import sys, trainhub_launch.expand; print(sorted({'re', 'typing', 'dataclasses', 'json'} "
            "& set(sys.modules)))"
        )
        answer = subprocess.run(
            [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True
        )
        assert answer.stdout.strip() == "[]"
