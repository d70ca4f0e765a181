from __future__ import annotations

from jobs.views.excerpt import LONGEST_QUOTE, excerpt

PLAIN = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: bad batch
"""


def found(tail: bytes, offset: int = 0) -> tuple[str, int, str]:
    quote = excerpt(tail, offset)
    assert quote is not None
    return quote.text, quote.offset, quote.exception


class TestTraceback:
    def test_is_quoted_from_its_first_line_to_the_exception(self) -> None:
        text, offset, exception = found(b"step 1\n" + PLAIN + b"bye\n")
        assert text == PLAIN.decode().rstrip()
        assert (offset, exception) == (7, "ValueError: bad batch")

    def test_the_offset_counts_from_where_the_tail_begins_in_the_log(self) -> None:
        assert found(b"step 1\n" + PLAIN, offset=1000)[1] == 1007

    def test_the_last_of_several_is_taken(self) -> None:
        later = PLAIN.replace(b"bad batch", b"worse")
        middle = b"\nDuring handling of the above exception, another exception occurred:\n\n"
        assert found(PLAIN + middle + later)[2] == "ValueError: worse"

    def test_the_report_of_a_launcher_about_a_dead_rank_is_not_the_cause(self) -> None:
        launcher = b'Traceback (most recent call last):\n  File "torchrun", line 8\n    run()\nChildFailedError: \n'
        assert found(PLAIN + launcher)[2] == "ValueError: bad batch"

    def test_a_script_that_a_launcher_could_not_even_start_is_quoted_itself(self) -> None:
        unread = b'starting\n  File "train.py", line 3\n    def f(\n         ^\nSyntaxError: \'(\' was never closed\n'
        launcher = b'Traceback (most recent call last):\n  File "torchrun", line 8\n    run()\nChildFailedError: \n'
        text, _, exception = found(unread + launcher)
        assert exception == "SyntaxError: '(' was never closed"
        assert text.splitlines()[0] == '  File "train.py", line 3'

    def test_the_prefix_that_torch_puts_before_each_line_is_understood(self) -> None:
        prefixed = b"".join(b"[rank1]: " + line for line in PLAIN.splitlines(keepends=True))
        text, _, exception = found(prefixed)
        assert exception == "ValueError: bad batch"
        assert text.startswith("[rank1]: Traceback")

    def test_colours_and_bytes_that_are_not_utf8_do_no_harm(self) -> None:
        text, _, exception = found(PLAIN.replace(b"bad batch", b"\x1b[31mbad\x1b[0m \xff"))
        assert exception == "ValueError: bad �"
        assert "\x1b" not in text

    def test_a_traceback_that_is_cut_off_is_quoted_without_an_exception(self) -> None:
        assert found(PLAIN[: PLAIN.index(b"ValueError")])[2] == ""

    def test_a_script_that_python_cannot_read_is_named_though_it_leaves_no_traceback(self) -> None:
        told = b'  File "train.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
        assert found(told) == (told.decode().rstrip(), 0, "SyntaxError: invalid syntax")

    def test_a_very_long_one_is_shortened_in_the_middle(self) -> None:
        frames = b"".join(b'  File "a.py", line %d\n    again()\n' % line for line in range(500))
        text, _, exception = found(b"Traceback (most recent call last):\n" + frames + b"RecursionError: too deep\n")
        assert len(text.splitlines()) == LONGEST_QUOTE + 1
        assert exception == "RecursionError: too deep"
        assert "lines …" in text

    def test_a_message_of_several_indented_lines_is_kept_whole(self) -> None:
        assert found(PLAIN + b"  shapes: (3, 4)\n  and (4, 4)\nnext step\n")[0].endswith("and (4, 4)")


class TestWithoutTraceback:
    def test_the_last_lines_are_quoted(self) -> None:
        text, offset, exception = found(b"".join(b"line %d\n" % line for line in range(100)))
        assert text.splitlines()[0] == "line 85"
        assert text.splitlines()[-1] == "line 99"
        assert (offset, exception) == (sum(len(f"line {line}\n") for line in range(85)), "")

    def test_of_a_progress_bar_only_what_was_drawn_last_is_seen(self) -> None:
        assert found(b"10%\r50%\r99%\n")[0] == "99%"

    def test_an_empty_log_has_nothing_to_quote(self) -> None:
        assert excerpt(b"", 0) is None
        assert excerpt(b"\n \n", 0) is None
