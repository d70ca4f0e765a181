from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.logs import line_index, log_scan
from jobs.logs.log_pattern import compile_pattern
from jobs.logs.log_scan import WINDOW_BYTES, LineMatch, LogScan, ScanPosition
from trainhub_launch.errors import SpecError


def scan(
    folder: Path, data: bytes, q: str, *, regex: bool = False, case: bool = False, most: int = 10**6
) -> list[LineMatch]:
    file = folder / "log"
    file.write_bytes(data)
    descriptor = os.open(file, os.O_RDONLY)
    pattern = compile_pattern(q, regex=regex, case=case)
    try:
        found: list[LineMatch] = []
        place = ScanPosition(0)
        while True:
            # A new scan from the place of the last one, as the next page of a search makes it.
            work = LogScan(
                descriptor, len(data), place, len(data), pattern=pattern, buffer=bytearray(WINDOW_BYTES)
            )
            window = work.search_window(most)
            if window is None:
                return found
            found += window
            place = work.place
    finally:
        os.close(descriptor)


def lines(folder: Path, data: bytes, q: str, **how: bool) -> list[str]:
    return [item.text for item in scan(folder, data, q, **how)]


class TestWhatMatches:
    def test_plain_text_in_any_case_and_in_the_given_one(self, tmp_path: Path) -> None:
        data = "Loss: 1\nloss: 2\nÄRGER\n(a+b)\n".encode()
        assert lines(tmp_path, data, "loss") == ["Loss: 1", "loss: 2"]
        assert lines(tmp_path, data, "loss", case=True) == ["loss: 2"]
        assert lines(tmp_path, data, "ärger") == ["ÄRGER"]
        assert lines(tmp_path, data, "(a+b)") == ["(a+b)"]

    @pytest.mark.parametrize(
        ("q", "found"),
        [
            ("^step", ["step 1", "step 2"]),
            ("2$", ["step 2"]),
            (r"step\s+\d", ["step 1", "step 2"]),
            ("1\\nstep", []),
            ("(?s)1.step", []),
            ("x*", ["step 1", "step 2", "", "end"]),
            ("^$", [""]),
            (r"\bend\b", ["end"]),
            ("STEP 1|END", ["step 1", "end"]),
        ],
    )
    def test_an_expression_sees_one_line_at_a_time(self, tmp_path: Path, q: str, found: list[str]) -> None:
        assert lines(tmp_path, b"step 1\nstep 2\n\nend\n", q, regex=True) == found

    def test_the_end_of_a_windows_line_is_its_end(self, tmp_path: Path) -> None:
        assert lines(tmp_path, b"step 1\r\nstep 2\r\n", "1$", regex=True) == ["step 1"]

    @pytest.mark.parametrize("q", ["(?=a)", r"(a)\1", "(", "[z-a]", "a{5000}", "*"])
    def test_what_the_engine_does_not_take_is_refused_naming_the_field(self, q: str) -> None:
        with pytest.raises(SpecError, match="cannot be used as an expression") as refused:
            compile_pattern(q, regex=True, case=False)
        assert refused.value.field == "q"

    @pytest.mark.parametrize("q", ["", "two\nlines", "x" * 501, "\ud800"])
    def test_what_nobody_can_look_for_is_refused(self, q: str) -> None:
        with pytest.raises(SpecError) as refused:
            compile_pattern(q, regex=False, case=False)
        assert refused.value.field == "q"

    def test_an_expression_that_hangs_other_engines_does_not_hang_this_one(self, tmp_path: Path) -> None:
        assert lines(tmp_path, b"a" * 100_000 + b"\n", "((a*)*)*b", regex=True) == []


class TestWhatIsShown:
    def test_colours_and_control_characters_are_gone_and_do_not_hide_text(self, tmp_path: Path) -> None:
        found = scan(tmp_path, b"one\n\x1b[1mlo\x1b[31mss\x1b[0m=0.5 \x07ok\x1b]0;title\x07\nend\n", "loss=")
        assert found == [LineMatch(4, "loss=0.5 ok", [(0, 5)])]

    def test_lines_after_coloured_ones_keep_their_places(self, tmp_path: Path) -> None:
        data = b"".join(b"\x1b[3%dmline %d\x1b[0m\n" % (number % 8, number) for number in range(1000))
        found = scan(tmp_path, data, "line 99")
        there = [data[item.offset :].split(b"m", 1)[1].split(b"\x1b")[0].decode() for item in found]
        assert there == [item.text for item in found]
        assert len(found) == 11

    def test_of_a_progress_bar_the_drawing_that_matches(self, tmp_path: Path) -> None:
        bar = b"".join(
            b"\r%3d%%|##| loss=%s" % (step, b"nan" if step == 40 else b"0.5") for step in range(100)
        )
        assert scan(tmp_path, bar + b"\nend\n", "nan") == [LineMatch(0, " 40%|##| loss=nan", [(14, 17)])]
        assert len(scan(tmp_path, bar + b"\nend\n", "loss")) == 1, "one line, however often it is drawn"

    def test_every_match_of_the_line_is_marked_in_characters(self, tmp_path: Path) -> None:
        assert scan(tmp_path, "é🚀 a é a\n".encode(), "a") == [LineMatch(0, "é🚀 a é a", [(3, 4), (7, 8)])]

    def test_a_long_line_is_trimmed_around_the_match(self, tmp_path: Path) -> None:
        (found,) = scan(tmp_path, "ä".encode() * 5000 + b"needle" + b"x" * 5000 + b"\n", "needle")
        ((left, right),) = found.spans
        assert found.text[left:right] == "needle"
        assert found.text.startswith("…ä")
        assert found.text.endswith("x…")
        assert "\ufffd" not in found.text
        assert len(found.text) < 500

    def test_bytes_that_are_no_text_are_shown_as_replacements(self, tmp_path: Path) -> None:
        assert lines(tmp_path, b"\xff\xfe bad needle \x80\n", "needle") == ["\ufffd\ufffd bad needle \ufffd"]


class TestWindows:
    @pytest.mark.parametrize("most", [1, 7, 10**6])
    def test_every_line_is_found_once_wherever_windows_and_pages_end(self, tmp_path: Path, most: int) -> None:
        data = b"".join(b"line %d %s\n" % (number, b"x" * (number % 300)) for number in range(0, 15_000))
        hits = [item.offset for item in scan(tmp_path, data, "7 x", most=most)]
        expected = [number for number in range(15_000) if number % 10 == 7 and number % 300]
        assert [int(data[offset : offset + 20].split()[1]) for offset in hits] == expected

    def test_a_line_longer_than_a_window_is_found_once_at_its_beginning(self, tmp_path: Path) -> None:
        bar = b"".join(b"\r%07d loss=0.5" % step for step in range(3 * WINDOW_BYTES // 16))
        found = scan(tmp_path, b"start\n" + bar + b" needle\nend needle\n", "needle")
        assert [item.offset for item in found] == [6, 6 + len(bar) + 8]
        assert [item.offset for item in scan(tmp_path, b"start\n" + bar + b"\n", "loss=0.5", most=1)] == [6]

    def test_the_last_line_needs_no_end(self, tmp_path: Path) -> None:
        assert lines(tmp_path, b"one\nneedle", "needle") == ["needle"]

    def test_lines_of_a_stretch_are_those_that_begin_in_it(self, tmp_path: Path) -> None:
        data = b"aa x\nbb x\ncc x\n"
        (tmp_path / "log").write_bytes(data)
        descriptor = os.open(tmp_path / "log", os.O_RDONLY)
        offsets = []
        for begin, end in ((0, 2), (2, 5), (5, 6), (6, 15)):
            work = LogScan(
                descriptor,
                len(data),
                ScanPosition(begin),
                end,
                pattern=compile_pattern("x", regex=False, case=True),
                buffer=bytearray(100),
            )
            while (found := work.search_window(9)) is not None:
                offsets.append([item.offset for item in found])
        os.close(descriptor)
        assert offsets == [[0], [5], [10]]


def test_lines_are_numbered_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_index, "BLOCK_BYTES", 1000)
    data = b"".join(b"%d\n" % number for number in range(1, 2001))
    (tmp_path / "log").write_bytes(data)
    descriptor = os.open(tmp_path / "log", os.O_RDONLY)
    for wanted in (1, 2, 1999, 500, 1200):
        offset = data.index(b"\n%d\n" % wanted) + 1 if wanted > 1 else 0
        assert line_index.line_number(("a" * 32, 1, str(tmp_path)), descriptor, offset) == wanted
    os.close(descriptor)


class TestWithoutEscapes:
    def test_many_different_ones_and_torn_ones(self) -> None:
        colors = b"".join(b"\x1b[38;5;%dm%d " % (number, number) for number in range(40))
        assert (
            log_scan.without_escapes(colors + b"\x1b[")
            == b"".join(b"%d " % number for number in range(40)) + b"\x1b["
        )
        assert log_scan.without_escapes(b"a\x1b[\x1b[0mb\x1b(Bc\x1bMd") == b"a\x1b[bcd"

    def test_in_linear_time(self) -> None:
        assert log_scan.without_escapes(b"\x1b]" * 200_000)[:4] == b"\x1b]\x1b]"
