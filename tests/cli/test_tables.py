"""Tables fit the terminal: names are shortened, numbers never."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from trainhub_cli import formats
from trainhub_cli.tables import Column, cell_width, lay_out, name, number, text_lines

COLUMNS = [number("RUN"), Column("STATE"), name("NAME"), name("EXPERIMENT", 2), number("LOSS", 1)]
ROWS = [
    ["7", "Completed", "a name that is rather long", "baseline", "0.12345"],
    ["123456", "Failed", "b", "an experiment with a name", "3"],
]


def drawn(width: int | None) -> list[str]:
    return text_lines(lay_out(COLUMNS, ROWS, width))


def test_without_a_terminal_nothing_is_shortened() -> None:
    assert drawn(None) == [
        "   RUN  STATE      NAME                        EXPERIMENT                    LOSS",
        "     7  Completed  a name that is rather long  baseline                   0.12345",
        "123456  Failed     b                           an experiment with a name        3",
    ]


@pytest.mark.parametrize("width", [100, 80, 70, 60, 52, 45, 40, 34, 30])
def test_it_fits_and_keeps_its_numbers(width: int) -> None:
    lines = drawn(width)
    assert max(map(cell_width, lines)) <= width
    assert "123456  Failed" in lines[2]
    assert ("0.12345" in lines[1]) == ("LOSS" in lines[0])


def test_columns_are_left_out_in_their_order() -> None:
    assert [" EXPERIMENT" in drawn(width)[0] for width in (60, 45)] == [True, False]
    assert ["LOSS" in drawn(width)[0] for width in (45, 34)] == [True, False]


def test_numbers_are_not_shortened_even_where_they_have_no_room() -> None:
    assert text_lines(lay_out([number("BYTES")], [["123456789"]], 4)) == ["    BYTES", "123456789"]


def test_a_name_cannot_move_the_cursor_or_break_the_line() -> None:
    (_, line) = text_lines(lay_out([name("NAME")], [["a\x1b[2Jb\nc\td\x9b"]], None))
    assert line == "a\ufffd[2Jb c d\ufffd"


def test_wide_characters_take_two_columns() -> None:
    lines = text_lines(lay_out([name("NAME"), number("N")], [["鳥" * 30, "1"], ["e\u0301", "2"]], 20))
    assert all(cell_width(line) <= 20 for line in lines)
    assert lines[2] == "e\u0301" + " " * 18 + "2"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (-1, "0 s"), (59.9, "59 s"), (185, "3 m 05 s"), (7800, "2 h 10 m"), (273600, "3 d 04 h")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert formats.format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (123456, "123 kB"),
        (2.5e9, "2.5 GB"),
        (3e18, "3000 PB"),
    ],
)
def test_sizes(size: float | None, text: str) -> None:
    assert formats.format_size(size) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (3, "3"),
        (3.0, "3"),
        (0.123456789, "0.12346"),
        ("NaN", "NaN"),
        (1e-9, "1e-09"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert formats.format_number(value) == text


def test_times_are_local_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 28, 12, 0, tzinfo=UTC).astimezone()
    today = formats.parse_time("2026-11-28T11:30:00.123456Z")
    assert today is not None
    assert formats.format_time("2026-11-28T11:30:00.123456Z", now) == today.strftime("%H:%M")
    assert formats.format_time("2026-03-01T12:00:00Z", now).startswith("01 Mar ")
    assert formats.format_time("2025-03-01T12:00:00Z", now) == "01 Mar 2025"
    assert formats.format_time(None) == "-"
