from __future__ import annotations

from datetime import timedelta

import pytest

from clusters.states import NodeStatus
from jobs.display.text import STATUS_STYLES, bytesize, duration
from jobs.states import MemberState, RunState
from jobs.templatetags.formats import code_spans


class TestBytesize:
    @pytest.mark.parametrize(
        ("count", "shown"),
        [
            (None, ""),
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10 * 1024, "10 KiB"),
            (1536 * 1024, "1.5 MiB"),
            (2**40, "1.0 TiB"),
        ],
    )
    def test_reads(self, count: int | None, shown: str) -> None:
        assert bytesize(count) == shown


class TestDuration:
    @pytest.mark.parametrize(
        ("seconds", "shown"),
        [
            (0, "0 s"),
            (0.04, "<0.1 s"),
            (0.4, "0.4 s"),
            (59.9, "59 s"),
            (61, "1 min 1 s"),
            (3661, "1 h 1 min"),
            (200000, "2 d 7 h"),
        ],
    )
    def test_reads(self, seconds: float, shown: str) -> None:
        assert duration(seconds) == shown
        assert duration(timedelta(seconds=seconds)) == shown

    def test_of_nothing_is_nothing(self) -> None:
        assert duration(None) == ""


class TestLook:
    @pytest.mark.parametrize("state", [*RunState, *MemberState, *NodeStatus])
    def test_every_state_has_a_colour_an_icon_and_a_word(self, state: str) -> None:
        look = STATUS_STYLES[state]
        assert look.tone
        assert look.icon
        assert look.word


class TestCodeSpans:
    def test_words_between_backquotes_are_code_and_the_rest_is_escaped(self) -> None:
        assert code_spans("a < b: `kill -9 <PID>`, or") == "a &lt; b: <code>kill -9 &lt;PID&gt;</code>, or"
