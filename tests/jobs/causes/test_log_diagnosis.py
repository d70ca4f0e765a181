"""What the end of one log says: tracebacks, chains, launchers, and everything that a terminal makes of
them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from jobs.causes.evidence import EvidenceWeight, RankEvidence, weigh
from jobs.causes.log_diagnosis import MAX_DISTANCE_LINES, MAX_QUOTE_LINES, diagnose_log
from jobs.causes.log_lines import MAX_LINE_LENGTH, MAX_LINES, last_line, parse_lines
from jobs.states import MemberState

PLAIN = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: bad batch
"""
HANDLING = b"\nDuring handling of the above exception, another exception occurred:\n\n"
TORCHRUN = b"""E1121 03:00:00.000 1 torch/distributed/elastic/multiprocessing/api.py:1002] failed \
(exitcode: 1) local_rank: 0
Traceback (most recent call last):
  File "torchrun", line 8
    run()
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"""


def text_of(tail: bytes, offset: int = 0) -> str:
    quote = diagnose_log(tail, offset).quote
    assert quote is not None
    return quote.text


def offset_of(tail: bytes, offset: int = 0) -> int:
    quote = diagnose_log(tail, offset).quote
    assert quote is not None
    return quote.offset


class TestTraceback:
    def test_is_quoted_from_its_first_line_to_the_exception(self) -> None:
        assert text_of(b"step 1\n" + PLAIN + b"bye\n") == PLAIN.decode().rstrip()
        assert diagnose_log(b"step 1\n" + PLAIN, 0).exception == "ValueError: bad batch"

    def test_the_offset_counts_from_where_the_tail_begins_in_the_log(self) -> None:
        assert offset_of(b"step 1\n" + PLAIN, 1000) == 1007

    def test_what_was_raised_last_names_what_failed(self) -> None:
        later = PLAIN.replace(b"bad batch", b"worse")
        found = diagnose_log(PLAIN + HANDLING + later, 0)
        assert (found.exception, found.began) == ("ValueError: worse", "")

    def test_a_known_failure_at_the_root_is_shown_with_it(self) -> None:
        root = PLAIN.replace(b"ValueError: bad batch", b"OSError: [Errno 28] No space left on device")
        found = diagnose_log(root + HANDLING + PLAIN, 0)
        assert (found.exception, found.began) == (
            "ValueError: bad batch",
            "OSError: [Errno 28] No space left on device",
        )
        assert found.match is not None
        assert found.match.failure.kind == "disk_full"
        assert offset_of(root + HANDLING + PLAIN) == 0, "the quote begins with the root"

    def test_a_connection_lost_while_handling_an_error_does_not_hide_the_error(self) -> None:
        lost = PLAIN.replace(
            b"ValueError: bad batch", b"RuntimeError: Connection closed by peer [127.0.0.1]:1"
        )
        assert diagnose_log(PLAIN + HANDLING + lost, 0).exception == "ValueError: bad batch"

    def test_one_that_was_survived_is_not_the_cause(self) -> None:
        found = diagnose_log(PLAIN + b"step\n" * (MAX_DISTANCE_LINES + 1) + b"giving up\n", 0)
        assert found.is_far
        survivor = RankEvidence(0, 0, "alpha", "0", MemberState.FAILED, exit_code=3)
        assert weigh(survivor, found).diagnosis.exception == ""

    def test_one_far_above_the_end_is_the_best_guess_of_a_process_that_ended_as_after_one(self) -> None:
        found = diagnose_log(PLAIN + b"step\n" * (MAX_DISTANCE_LINES + 1), 0)
        evidence = weigh(RankEvidence(0, 0, "alpha", "0", MemberState.FAILED, exit_code=1), found)
        assert (evidence.diagnosis.exception, evidence.weight) == (
            "ValueError: bad batch",
            EvidenceWeight.PLAIN,
        )
        assert not evidence.agrees

    def test_one_of_a_thread_counts_only_if_the_process_raised_none(self) -> None:
        in_thread = b"Exception in thread Thread-1:\n" + PLAIN.replace(b"bad batch", b"late")
        assert diagnose_log(PLAIN + in_thread, 0).exception == "ValueError: bad batch"
        assert diagnose_log(b"step\n" + in_thread, 0).exception == "ValueError: late"

    @pytest.mark.parametrize("bar", [b"#" * 300_000, b"\r 45%|####" * 30_000])
    def test_a_progress_bar_without_an_end_does_not_hide_it(self, bar: bytes) -> None:
        found = diagnose_log(bar + PLAIN, 0)
        assert found.exception == "ValueError: bad batch"
        assert found.quote is not None
        assert found.quote.text.startswith("Traceback")

    def test_one_that_python_ignored_is_not_the_cause(self) -> None:
        ignored = b"Exception ignored in: <function Loader.__del__>\n" + PLAIN.replace(b"bad batch", b"late")
        assert diagnose_log(PLAIN + ignored, 0).exception == "ValueError: bad batch"

    def test_the_prefix_that_torch_puts_before_each_line_is_taken_off(self) -> None:
        prefixed = b"".join(b"[rank1]: " + line for line in PLAIN.splitlines(keepends=True))
        assert diagnose_log(prefixed, 0).exception == "ValueError: bad batch"
        assert text_of(prefixed) == PLAIN.decode().rstrip()

    def test_one_that_is_cut_off_is_quoted_without_an_exception(self) -> None:
        assert diagnose_log(PLAIN[: PLAIN.index(b"ValueError")], 0).exception == ""

    def test_without_a_last_newline_it_is_the_same(self) -> None:
        assert diagnose_log(PLAIN.rstrip(), 0).exception == "ValueError: bad batch"

    def test_a_very_long_one_is_shortened_in_the_middle(self) -> None:
        frames = b"".join(b'  File "a.py", line %d\n    again()\n' % line for line in range(500))
        text = text_of(b"Traceback (most recent call last):\n" + frames + b"RecursionError: too deep\n")
        assert len(text.splitlines()) == MAX_QUOTE_LINES + 1
        assert text.endswith("RecursionError: too deep")
        assert "lines …" in text

    def test_a_message_of_several_indented_lines_is_kept_whole(self) -> None:
        assert text_of(PLAIN + b"  shapes: (3, 4)\n  and (4, 4)\nnext step\n").endswith("and (4, 4)")


class TestLauncher:
    def test_its_own_report_is_not_the_cause(self) -> None:
        assert diagnose_log(PLAIN + TORCHRUN, 0).exception == "ValueError: bad batch"

    def test_a_script_that_could_not_even_start_is_quoted_itself(self) -> None:
        unread = (
            b"starting\n  File \"train.py\", line 3\n    def f(\n         ^\nSyntaxError: '(' was "
            b"never closed\n"
        )
        assert diagnose_log(unread + TORCHRUN, 0).exception == "SyntaxError: '(' was never closed"
        assert text_of(unread + TORCHRUN).splitlines()[0] == '  File "train.py", line 3'

    def test_of_two_children_at_once_the_one_that_raised_first_is_taken(self) -> None:
        one = b"".join(b"[rank1]: " + line for line in PLAIN.splitlines(keepends=True))
        lost = PLAIN.replace(b"ValueError: bad batch", b"RuntimeError: Connection closed by peer")
        other = b"".join(b"[rank0]: " + line for line in lost.splitlines(keepends=True))
        mixed = b"".join(
            b + a for a, b in zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=True)
        )
        assert diagnose_log(mixed + TORCHRUN, 0, launcher=True).exception == "ValueError: bad batch"
        assert text_of(mixed + TORCHRUN) == PLAIN.decode().rstrip(), (
            "the lines of the other child are left out"
        )


class TestTerminal:
    def test_colours_and_bytes_that_are_not_utf8_do_no_harm(self) -> None:
        found = diagnose_log(PLAIN.replace(b"bad batch", b"\x1b[31mbad\x1b[0m \xff"), 0)
        assert found.exception == "ValueError: bad �"
        assert found.quote is not None
        assert "\x1b" not in found.quote.text

    def test_windows_line_ends(self) -> None:
        assert diagnose_log(PLAIN.replace(b"\n", b"\r\n"), 0).exception == "ValueError: bad batch"

    def test_a_traceback_that_begins_behind_a_progress_bar(self) -> None:
        assert text_of(b" 10%|#  | 1/10\r 20%|## | 2/10" + PLAIN) == PLAIN.decode().rstrip()

    def test_of_a_progress_bar_only_what_was_drawn_last_is_seen(self) -> None:
        assert text_of(b"10%\r50%\r99%\n") == "99%"
        assert last_line(b"epoch 1\n10%\r50%\n\n") == "50%"

    def test_the_last_lines_are_quoted_where_nothing_else_is_told(self) -> None:
        log = b"".join(b"line %d\n" % line for line in range(100))
        assert text_of(log).splitlines() == [f"line {line}" for line in range(85, 100)]
        assert offset_of(log) == log.index(b"line 85")

    def test_an_empty_log_has_nothing_to_quote(self) -> None:
        assert diagnose_log(b"", 0).quote is None
        assert diagnose_log(b"\n \n", 0).quote is None


START = b"Traceback (most recent call last):\n"
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "starts": lambda n: START * n,
    "starts and frames": lambda n: START * n + b"  x\n" * n,
    "joined": lambda n: (PLAIN + HANDLING) * (n // 8),
    "one line": lambda n: b"No module named " * 4 * n,
    "escapes": lambda n: (b"\x1b[" + b"0" * 40) * n,
    "open escapes": lambda n: b"\x1b]" * n * 10,
    "bars": lambda n: b"99%\r" * n * 10,
    "prefixes": lambda n: b"".join(b"[rank%d]: " % k + START for k in range(n)),
    "margins": lambda n: b"  | " * n + START,
    "braces": lambda n: b"Batch " * n + b"must be divisible",
    "spaces": lambda n: START + b" " * n * 20 + b"\n" + b"A" * n * 20,
}


def work(tail: bytes) -> int:
    """How many calls reading takes: what is done per line, whatever the machine's speed."""
    # What is done for the first time, such as imports and the measurement of coverage, does not count.
    diagnose_log(tail, 0)
    count = 0

    def note(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        diagnose_log(tail, 0)
    finally:
        sys.setprofile(None)
    return count


class TestHostileLogs:
    @pytest.mark.parametrize("kind", HOSTILE)
    def test_twice_the_input_is_at_most_twice_the_work(self, kind: str) -> None:
        assert work(HOSTILE[kind](800)) <= 2.2 * work(HOSTILE[kind](400)) + 500

    def test_lines_are_bounded_in_number_and_length(self) -> None:
        found = parse_lines(b"\n" * 3 * MAX_LINES, 0)
        assert len(found) == MAX_LINES
        assert found[0].offset == 2 * MAX_LINES
        assert len(parse_lines(b"x" * 10 * MAX_LINE_LENGTH, 0)[0].text) == MAX_LINE_LENGTH
