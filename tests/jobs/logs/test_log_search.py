from __future__ import annotations

import os
import resource
import uuid

import pytest

from jobs.logs import log_search, log_store, log_timestamps
from jobs.logs.log_pattern import compile_pattern
from jobs.logs.log_search import LogCursor, LogHit, LogSearch, SearchedLog
from workspaces import process_caches

T0 = 1_800_000_000_000
RANKS = {f"70_driver_log_{rank}.txt": rank for rank in range(3)}


class Attempt:
    """Three ranks whose lines arrive at moments that the test chooses (seconds after T0)."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex

    def say(self, rank: int, at: float, text: str) -> None:
        name, data = f"70_driver_log_{rank}.txt", text.encode()
        begin = log_store.size(self.run, 1, name)
        log_store.append(self.run, 1, name, begin, data)
        moment = T0 + int(at * 1000)
        log_timestamps.record_arrival((self.run, 1, name), begin, begin + len(data), moment)
        os.utime(log_store.path(self.run, 1, name), ns=(0, moment * 1_000_000))

    def logs(self) -> list[SearchedLog]:
        found = [log_search.load_log(self.run, 1, name, rank) for name, rank in RANKS.items()]
        return [log for log in found if log is not None]

    def hits(self, q: str, *, limit: int = 1000, order: str = "time") -> list[LogHit]:
        """All of them, page by page."""
        found: list[LogHit] = []
        cursor: LogCursor | None = None
        while True:
            search = LogSearch(self.logs(), compile_pattern(q, regex=False, case=False), limit)
            page = search.by_rank(cursor) if order == "rank" else search.by_time(cursor)
            assert len(page.hits) <= limit
            found += page.hits
            cursor = page.next
            if cursor is None:
                return found

    def told(self, q: str, *, limit: int = 1000, order: str = "time") -> list[str]:
        return [
            f"{hit.log.rank}:{hit.line} {hit.match.text}" for hit in self.hits(q, limit=limit, order=order)
        ]


@pytest.fixture
def attempt() -> Attempt:
    process_caches.clear_all()
    made = Attempt()
    for at, rank, text in (
        (0, 0, "start\nx a\n"),
        (1, 1, "x b\n"),
        (1, 0, "x c\n"),
        (5, 2, "x d\nno\nx e\n"),
        (6, 0, "x f\n"),
        (6.1, 1, "x g\n"),
    ):
        made.say(rank, at, text)
    return made


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
class TestOrder:
    def test_by_time_then_rank_however_long_the_pages(self, attempt: Attempt, limit: int) -> None:
        assert attempt.told("x ", limit=limit) == [
            "0:2 x a",
            "0:3 x c",
            "1:1 x b",
            "2:1 x d",
            "2:3 x e",
            "0:4 x f",
            "1:2 x g",
        ]

    def test_by_rank(self, attempt: Attempt, limit: int) -> None:
        order = ["0:2 x a", "0:3 x c", "0:4 x f", "1:1 x b", "1:2 x g", "2:1 x d", "2:3 x e"]
        assert attempt.told("x ", limit=limit, order="rank") == order


class TestTimes:
    def test_each_line_has_its_own(self, attempt: Attempt) -> None:
        assert [(hit.arrival.last_ms - T0) / 1000 for hit in attempt.hits("x ")] == [0, 1, 1, 5, 5, 6, 6.1]

    def test_the_first_of_all_ranks_is_one_hit_away(self, attempt: Attempt) -> None:
        attempt.say(2, 7, "Traceback of 2\n")
        attempt.say(1, 7.5, "Traceback of 1\n")
        page = LogSearch(attempt.logs(), compile_pattern("Traceback", regex=False, case=True), 1).by_time(
            None
        )
        assert [hit.log.rank for hit in page.hits] == [2]

    def test_a_line_that_arrives_in_pieces_is_found_once_at_the_time_of_its_first(
        self, attempt: Attempt
    ) -> None:
        attempt.say(2, 10, "a long nee")
        attempt.say(2, 20, "dle\n")
        (hit,) = attempt.hits("needle")
        assert (hit.arrival.last_ms - T0) / 1000 == 10


class TestPages:
    @pytest.mark.parametrize("order", ["by_rank", "by_time"])
    def test_pages_without_any_time_get_further_and_find_everything_once(
        self, order: str, attempt: Attempt
    ) -> None:
        hits, cursor, pattern = [], None, compile_pattern("x ", regex=False, case=False)
        for _ in range(100):
            page = getattr(LogSearch(attempt.logs(), pattern, 10, seconds=0), order)(cursor)
            hits += page.hits
            assert page.next is None or page.next != cursor
            cursor = page.next
            if cursor is None:
                break
        assert cursor is None
        assert len(hits) == len({(hit.log.name, hit.match.offset) for hit in hits}) == 7

    def test_while_others_search_one_waits_for_a_turn_and_is_told_to_come_again(
        self, attempt: Attempt
    ) -> None:
        for _ in range(log_search.MAX_SEARCHES):
            assert log_search._search_slots.acquire(timeout=1)
        try:
            page = LogSearch(
                attempt.logs(), compile_pattern("x ", regex=False, case=False), 10, seconds=0.01
            ).by_time(None)
        finally:
            log_search._search_slots.release(log_search.MAX_SEARCHES)
        assert (page.hits, page.next) == ([], LogCursor(0))

    def test_a_large_log_without_times_is_searched_in_pages_too(self, attempt: Attempt) -> None:
        name = next(iter(RANKS))
        data = b"".join(b"filler %d\n" % number for number in range(200_000)) + b"x end\n"
        log_store.append(attempt.run, 1, name, log_store.size(attempt.run, 1, name), data)
        told = attempt.told("x ", limit=3)
        assert len(told) == 8
        assert "0:200005 x end" in told

    def test_nothing_to_search_is_no_hit(self) -> None:
        page = LogSearch([], compile_pattern("x", regex=False, case=False), 10).by_time(None)
        assert (page.hits, page.next) == ([], None)


@pytest.mark.slow
def test_a_gigabyte_is_searched_in_a_few_megabytes_of_memory(attempt: Attempt) -> None:
    name = next(iter(RANKS))
    path = log_store.path(attempt.run, 1, name)
    with path.open("r+b") as file:
        file.truncate(2**30)  # a hole in the file costs no disk and reads as one endless line
        file.seek(2**30)
        file.write(b"\nneedle\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert [hit.match.offset for hit in attempt.hits("needle")] == [2**30 + 1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
