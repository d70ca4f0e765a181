"""What befalls GPUs is kept until the hub has it, and waited for whatever goes wrong."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from tests.hub import eventually
from trainhub_node.gpu import gpu_events
from trainhub_node.gpu.gpu_events import MAX_EVENTS, GpuEventListener, GpuEventLog, LibraryEvent
from trainhub_node.gpu.nvml_errors import GPU_IS_LOST, TIMEOUT, UNKNOWN, from_code


class TestBook:
    def test_serials_count_from_one(self) -> None:
        book = GpuEventLog(clock=lambda: 17.0)
        book.add("lost", "GPU-1", detail="gone")
        book.record_event(LibraryEvent("xid", "GPU-2", 79))

        assert [(event.serial, event.at, event.kind, event.gpu, event.code) for event in book.all()] == [
            (1, 17.0, "lost", "GPU-1", 0),
            (2, 17.0, "xid", "GPU-2", 79),
        ]

    def test_an_event_stays_until_it_is_confirmed(self) -> None:
        book = GpuEventLog()
        for gpu in ("GPU-1", "GPU-2", "GPU-3"):
            book.add("lost", gpu)
        book.confirm(2)
        book.confirm(1)

        assert [event.gpu for event in book.all()] == ["GPU-3"]

    def test_serials_go_on_after_all_are_confirmed(self) -> None:
        book = GpuEventLog()
        book.add("lost", "GPU-1")
        book.confirm(1)
        book.add("back", "GPU-1")

        assert [event.serial for event in book.all()] == [2]

    def test_the_oldest_goes_when_there_are_too_many_and_the_log_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        book = GpuEventLog()
        for number in range(MAX_EVENTS + 3):
            book.add("xid", "GPU-1", code=number)

        assert len(book.all()) == MAX_EVENTS
        assert book.all()[0].serial == 4
        assert sum("the oldest is dropped" in message for message in caplog.messages) == 3

    def test_xids_are_counted_for_each_gpu(self) -> None:
        book = GpuEventLog()
        for code in (31, 79):
            book.record_event(LibraryEvent("xid", "GPU-1", code))
        book.confirm(2)

        assert book.counters("GPU-1") == {"xid_last": 79, "xid_count": 2}
        assert book.counters("GPU-2") == {}

    def test_an_xid_says_which_part_of_a_split_gpu_it_befell(self) -> None:
        book = GpuEventLog()
        book.record_event(LibraryEvent("xid", "GPU-1", 79))
        book.record_event(LibraryEvent("xid", "GPU-1", 9999, instance=3))

        assert [(event.code, event.detail) for event in book.all()] == [
            (79, ""),
            (9999, "MIG GPU instance 3"),
        ]


class TestListener:
    @pytest.fixture
    def book(self, monkeypatch: pytest.MonkeyPatch) -> GpuEventLog:
        monkeypatch.setattr(gpu_events, "RETRY_S", 0.01)
        return GpuEventLog()

    def listening(self, book: GpuEventLog, *values: LibraryEvent | Exception) -> GpuEventListener:
        """One that is told these, and then nothing more."""
        remaining: Iterator[LibraryEvent | Exception] = iter(values)
        quiet = threading.Event()

        def wait() -> LibraryEvent:
            one = next(remaining, None)
            if one is None:
                quiet.wait(0.01)
                raise from_code(TIMEOUT, "Timeout")
            if isinstance(one, Exception):
                raise one
            return one

        listener = GpuEventListener(wait, book)
        listener.start()
        return listener

    @pytest.mark.parametrize(
        "trouble",
        [
            from_code(UNKNOWN, "Unknown Error"),
            from_code(GPU_IS_LOST, "GPU is lost"),
            ValueError("no such event"),
        ],
    )
    def test_lives_on_whatever_goes_wrong(
        self, book: GpuEventLog, trouble: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        listener = self.listening(book, trouble, trouble, LibraryEvent("xid", "GPU-1", 31))
        eventually(book.all)

        assert listener.close()
        assert [record.levelno for record in caplog.records if "is retried" in record.message] == [
            logging.WARNING
        ]

    def test_an_event_of_an_unknown_gpu_is_told_without_it(self, book: GpuEventLog) -> None:
        listener = self.listening(book, LibraryEvent("xid", "", 31), LibraryEvent("ecc", "GPU-1", 0))
        eventually(lambda: len(book.all()) == 2)
        listener.close()

        assert [(event.kind, event.gpu) for event in book.all()] == [("xid", ""), ("ecc", "GPU-1")]

    def test_a_silence_is_not_said(self, book: GpuEventLog, caplog: pytest.LogCaptureFixture) -> None:
        listener = self.listening(book, *[from_code(TIMEOUT, "Timeout")] * 5, LibraryEvent("ecc", "GPU-1", 0))
        eventually(book.all)
        listener.close()

        assert [message for message in caplog.messages if "retried" in message] == []
