"""Lines that are too long, never end, or draw themselves again."""

from __future__ import annotations

import pytest

from jobs.log_shipping.line_reader import LineReader, LogSource
from jobs.logs import log_removal, log_store
from tests.log_shipping.conftest import Shipping
from tests.log_shipping.receiver import LogReceiver
from workspaces import process_caches

pytestmark = pytest.mark.django_db


class TestLongLines:
    def test_a_long_line_comes_in_pieces_with_a_sign(self, shipping: Shipping, receiver: LogReceiver) -> None:
        line = "é" * 100_000
        shipping.kind("loki")
        shipping.say(f"{line}\nafter\n")
        shipping.ship()
        *pieces, last, after = receiver.texts()
        assert after == "after"
        assert all(piece.endswith("…") for piece in pieces)
        assert "".join(piece.strip("…") for piece in [*pieces, last]) == line
        assert last.startswith("…")

    def test_a_line_that_never_ends_is_shipped_while_it_grows(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        for _ in range(3):
            shipping.say("x" * 50_000)
            shipping.ship()
        assert len(receiver.entries) == 2
        shipping.say("end\n")
        shipping.ship()
        assert "".join(text.strip("…") for text in receiver.texts()) == "x" * 150_000 + "end"

    def test_of_a_progress_bar_only_its_last_state_is_shipped(
        self, shipping: Shipping, receiver: LogReceiver
    ) -> None:
        shipping.say("".join(f"\r{percent} % {'#' * 1000}" for percent in range(100)))
        shipping.ship()
        assert receiver.texts() == []
        shipping.say("\r100 %\r\nnext\r\n")
        shipping.ship()
        assert receiver.texts() == ["100 %", "next"]

    def test_other_bytes_than_utf_8_are_replaced(self, shipping: Shipping, receiver: LogReceiver) -> None:
        shipping.kind("loki")
        shipping.say(b"\xff\x00\x1b[31mred\n")
        shipping.ship()
        assert receiver.texts() == ["\ufffd\x00\x1b[31mred"]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_lines_do_not_depend_on_how_bytes_arrive(step: int) -> None:
    """However a log grows, the pieces of its lines make up the same text."""
    process_caches.clear_all()
    data = ("short\n" + "é" * 900 + "\n" + "old\rnew\r\n" + "\n" + "y" * 3000 + "z").encode()
    source = LogSource("w", "e", f"{step:032x}", 1, 1, "70_driver_log.txt", "driver", "n", 0)
    log_removal.remove_run(source.run)
    at, texts = 0, []
    for begin in range(0, len(data), step * 50):
        chunk = data[begin : begin + step * 50]
        log_store.append(source.run, 1, source.log, begin, chunk)
        is_over = begin + len(chunk) == len(data)
        reader = LineReader(source, at, is_over=is_over, max_line_bytes=1024)
        while lines := reader.read_lines(2**63, 2**20, 100):
            texts += [line.text for line in lines]
            at = reader.at
        at = reader.at
    log_removal.remove_run(source.run)
    assert "\n".join(texts).replace("…\n…", "") == "short\n" + "é" * 900 + "\nnew\n\n" + "y" * 3000 + "z"
