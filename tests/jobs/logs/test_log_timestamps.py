from __future__ import annotations

import os
import uuid
from itertools import pairwise

import pytest

from jobs.logs import log_removal, log_store, log_timestamps
from jobs.logs.arrivals import RECORD_INTERVAL_MS, Arrival, thin_out
from jobs.logs.log_timestamps import (
    MAX_RECORDS,
    RECORD_BYTES,
    LogSilence,
)
from workspaces import process_caches

NAME = "70_driver_log.txt"
T0 = 1_800_000_000_000


class Log:
    """A log that grows at moments which the test chooses (milliseconds after T0)."""

    def __init__(self) -> None:
        self.key = (uuid.uuid4().hex, 1, NAME)
        self.size = 0
        self.path = log_store.run_folder(self.key[0], 1) / "arrivals" / NAME

    def grow(self, at_ms: int, count: int = 10, *, late: bool = False) -> None:
        begin, self.size = self.size, self.size + count
        log_store.append(*self.key, begin, b"x" * count)
        log_timestamps.record_arrival(self.key, begin, self.size, T0 + at_ms, late=late)

    @property
    def times(self) -> log_timestamps.LogTimeline:
        os.utime(log_store.path(*self.key), ns=(0, (T0 + 10_000_000) * 1_000_000))
        return log_timestamps.LogTimeline.load(*self.key)

    def came(self, offset: int) -> tuple[int, int, bool]:
        found = self.times.arrival_at(offset)
        return found.first_ms - T0, found.last_ms - T0, found.late

    @property
    def records(self) -> int:
        return self.path.stat().st_size // RECORD_BYTES


@pytest.fixture
def log() -> Log:
    process_caches.clear_all()
    return Log()


class TestNoting:
    def test_a_lone_line_has_its_exact_time(self, log: Log) -> None:
        log.grow(0)
        log.grow(60_000)
        log.grow(180_000)
        assert [log.came(offset) for offset in (0, 9, 10, 29)] == [
            (0, 0, False),
            (0, 0, False),
            (60_000, 60_000, False),
            (180_000, 180_000, False),
        ]

    def test_a_flood_is_noted_four_times_a_second_and_never_coarser(self, log: Log) -> None:
        for at in range(0, 10_000, 5):
            log.grow(at, 1000)
        assert 35 <= log.records <= 42
        for at in range(0, 9_500, 500):
            first, last, late = log.came(at // 5 * 1000)
            assert first <= at <= last
            assert last - first <= RECORD_INTERVAL_MS
            assert not late

    def test_the_last_line_before_a_silence_keeps_its_time(self, log: Log) -> None:
        log.grow(0)
        log.grow(100)
        log.grow(3_600_000)
        assert log.came(10) == (100, 100, False)

    def test_what_is_not_written_yet_is_told_by_the_logs_own_time(self, log: Log) -> None:
        log.grow(0)
        log.grow(100)
        assert log.records == 1
        assert log.came(10)[1] == 10_000_000

    def test_bytes_that_waited_are_marked(self, log: Log) -> None:
        log.grow(0)
        log.grow(30_000, late=True)
        log.grow(30_100, late=True)
        log.grow(30_200)
        log.grow(31_000)
        assert [log.came(offset)[2] for offset in (0, 10, 20, 30, 40)] == [False, True, True, False, False]

    def test_a_clock_set_back_does_not_turn_the_order_round(self, log: Log) -> None:
        log.grow(60_000)
        log.grow(0)
        log.grow(61_000)
        assert log.came(10) == (60_000, 60_000, False)

    def test_the_end_of_an_attempt_writes_what_was_collected(self, log: Log) -> None:
        log.grow(0)
        log.grow(100)
        log_timestamps.flush_attempt(log.key[0], 1)
        assert log.came(10) == (100, 100, False)


class TestCrash:
    def test_a_torn_record_is_written_over(self, log: Log) -> None:
        log.grow(0)
        with log.path.open("ab") as file:
            file.write(b"torn")
        process_caches.clear_all()
        log.grow(5_000)
        assert log.came(10) == (5_000, 5_000, False)
        assert log.path.stat().st_size == 2 * RECORD_BYTES

    def test_what_an_ended_process_had_only_collected_came_soon_after_its_last_record(self, log: Log) -> None:
        log.grow(0)
        log.grow(100)
        process_caches.clear_all()
        log.grow(60_000)
        assert log.came(10) == (0, 2 * RECORD_INTERVAL_MS, False)
        assert log.came(20) == (60_000, 60_000, False)

    def test_records_of_bytes_that_the_log_has_lost_count_for_nothing(self, log: Log) -> None:
        log.grow(0)
        log.grow(1_000)
        os.truncate(log_store.path(*log.key), 10)
        process_caches.clear_all()
        log.size = 10
        log.grow(9_000, 5)
        assert log.came(9) == (0, 0, False)
        assert log.came(12) == (9_000, 9_000, False)

    def test_a_log_older_than_its_record_is_known_to_have_come_by_its_last_change(self, log: Log) -> None:
        log_store.append(*log.key, 0, b"old\n")
        assert log.came(0) == (10_000_000, 10_000_000, True)


class TestBound:
    def test_the_file_stays_small_and_still_knows_the_long_silences(self, log: Log) -> None:
        at = 0
        for index in range(3 * MAX_RECORDS):
            at += 400_000 if index == 1000 else 1_000
            log.grow(at, 1)
        assert log.records <= MAX_RECORDS
        gaps = log.times.gaps(300_000)
        assert gaps == [LogSilence(T0 + 1000 * 1000, T0 + 1000 * 1000 + 400_000, is_outage=False)]

    def test_thinning_loses_no_byte_and_stays_in_order(self) -> None:
        many = [
            Arrival(index + 1, index * 700, index * 700 + 100, late=index % 2 == 0) for index in range(5000)
        ]
        few = thin_out(many, 100)
        assert len(few) <= 100
        assert few[-1].end == 5000
        assert (few[0].first_ms, few[-1].last_ms) == (0, 4999 * 700 + 100)
        assert all(left.end < right.end and left.last_ms <= right.last_ms for left, right in pairwise(few))

    def test_a_process_keeps_only_so_many_logs_in_mind(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_timestamps, "MAX_PENDING", 4)
        log.grow(0)
        log.grow(100)
        for _ in range(6):
            Log().grow(0)
        log.grow(5_000)
        assert log.came(10) == (100, 100, False)


class TestGaps:
    def test_silence_counts_from_the_start_of_the_process(self, log: Log) -> None:
        log.grow(20_000)
        log.grow(21_000)
        log.grow(60_000)
        assert log.times.gaps(10_000, since_ms=T0) == [
            LogSilence(T0, T0 + 20_000, is_outage=False),
            LogSilence(T0 + 21_000, T0 + 60_000, is_outage=False),
        ]

    def test_a_gap_that_ends_with_late_bytes_says_nothing_about_the_rank(self, log: Log) -> None:
        log.grow(0)
        log.grow(60_000, late=True)
        assert log.times.gaps(10_000) == [LogSilence(T0, T0 + 60_000, is_outage=True)]


def test_the_rhythm_of_a_log_is_how_long_it_mostly_pauses(log: Log) -> None:
    for at in (0, 20_000, 40_000, 60_000, 180_000):
        log.grow(at)
    assert log.times.median_pause_ms() == 20_000


class TestMoments:
    def test_bytes_before_a_moment_and_the_next_one(self, log: Log) -> None:
        for at in (0, 1_000, 2_000):
            log.grow(at)
        times = log.times
        assert [times.bytes_before(T0 + at) for at in (0, 1, 1_000, 1_001, 9_000)] == [0, 10, 10, 20, 30]
        assert times.next_moment(T0) == T0 + 1_000
        assert times.next_moment(T0 + 2_000) is None


def test_goes_with_the_run(log: Log) -> None:
    log.grow(0)
    log_removal.remove_run(log.key[0])
    assert not log.path.exists()
    log_timestamps.flush_attempt(log.key[0], 1)
    assert not log_store.run_folder(log.key[0]).exists()
