"""What people type, and the values it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.wizard.text_values import join_arguments, read_span, split_arguments, write_span

TEXT = st.text(st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"]))


class TestArguments:
    @given(st.lists(TEXT))
    def test_any_list_comes_back_from_its_text(self, arguments: list[str]) -> None:
        assert split_arguments(join_arguments(tuple(arguments))) == tuple(arguments)

    def test_lines_and_spaces_both_separate(self) -> None:
        assert split_arguments("--epochs 5\r\n--name 'two words'") == ("--epochs", "5", "--name", "two words")

    def test_nothing_is_expanded(self) -> None:
        assert split_arguments("$RANK $(id) `id` *.py ; ls # no") == (
            "$RANK",
            "$(id)",
            "`id`",
            "*.py",
            ";",
            "ls",
            "#",
            "no",
        )

    def test_each_flag_begins_a_line(self) -> None:
        assert join_arguments(("in.csv", "--epochs", "5", "--rate", "-1")) == "in.csv\n--epochs 5\n--rate -1"

    @pytest.mark.parametrize(("text", "remedy"), [("--name 'open", "close it"), ("ends with \\", "\\\\")])
    def test_what_cannot_be_read_says_the_remedy(self, text: str, remedy: str) -> None:
        with pytest.raises(ValueError, match=r"quotation mark|backslash") as refused:
            split_arguments(text)
        assert remedy in str(refused.value)


class TestSpans:
    @given(st.integers(1, 366 * 86400))
    def test_any_span_comes_back_from_its_text(self, seconds: int) -> None:
        assert read_span(write_span(seconds)) == seconds

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90", 90),
            ("45 min", 2700),
            ("2h30m", 9000),
            ("2H 30M", 9000),
            ("1.5 h", 5400),
            ("1d", 86400),
            ("", None),
            ("  ", None),
        ],
    )
    def test_reads(self, text: str, seconds: int | None) -> None:
        assert read_span(text) == seconds

    @pytest.mark.parametrize("text", ["soon", "-5", "5 weeks", "0", "0.5s", "1:30"])
    def test_refuses_the_rest_with_a_sentence(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"is not a duration|at least 1"):
            read_span(text)
