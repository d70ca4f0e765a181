"""Words of a spec in bash mean what they mean on a node, and come back from bash unchanged."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.exports.shell_words import shell_line, split_words
from trainhub_launch.errors import UnknownVariable
from trainhub_launch.expand import expand

ENV = {"A": "va l", "LC_ALL": "C.UTF-8"}
PIECES = st.sampled_from(
    [
        "$", "$$", "$A", "${A}", "{", "}", "'", '"', "\\", "\n", "#", "~", "${{", "`", "$(id)", "A", "_",
        "é", " ", "!", "\x85", "*",
    ]
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
WORDS = st.lists(TEXTS | st.lists(PIECES, max_size=6).map("".join), min_size=1, max_size=4)


def expanded(word: str) -> str | None:
    try:
        return expand(word, ENV)
    except UnknownVariable:
        return None


def read_by_bash(line: str) -> list[str]:
    argv = ["bash", "-uc", f"printf '%s\\0' {line}"]
    done = subprocess.run(argv, env=ENV, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@given(WORDS)
def test_bash_reads_each_word_as_a_node_does(words: list[str]) -> None:
    values = [expanded(word) for word in words]
    line = shell_line(words)
    assert "\n" not in line
    # An expression of Azure ML or dstack.
    assert "${{" not in line
    if None not in values:
        assert read_by_bash(line) == values


@given(WORDS)
def test_each_word_comes_back(words: list[str]) -> None:
    again = split_words(shell_line(words))
    assert again is not None
    assert [expanded(word) for word in again] == [expanded(word) for word in words]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py  --lr 1e-3", ["python", "train.py", "--lr", "1e-3"]),
        ('a "$A"b ${A}c "x$A y"', ["a", "${A}b", "${A}c", "x$A y"]),
        ("$A''b \"$A\"''b", ["${A}b", "${A}b"]),
        (r"a\ b '$A' \$A", ["a b", "$$A", "$$A"]),
        ("--x='a b' --y=\"it's\"", ["--x=a b", "--y=it's"]),
        ("''", [""]),
        ("a#b", ["a#b"]),
        ("", []),
    ],
)
def test_simple_commands_are_words(line: str, words: list[str]) -> None:
    assert split_words(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "a | b",
        "a; b",
        "a > f",
        "$(a)",
        "`a`",
        "a *",
        "a ?",
        "~/a",
        "# a",
        "a 'b",
        'a "b',
        "a{1,2}",
        "$1",
        "a &",
        '"$(a)"',
        "${A:-b}",
        "a\\",
    ],
)
def test_only_a_shell_understands_this(line: str) -> None:
    assert split_words(line) is None
