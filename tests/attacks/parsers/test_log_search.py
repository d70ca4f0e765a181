"""S12: a short expression must not make a log search compute for minutes."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator

import pytest

from jobs.logs import log_search, log_store, log_timestamps
from jobs.logs.log_pattern import MAX_EXPRESSION_INSTRUCTIONS, compile_pattern, program_size
from jobs.logs.log_scan import window_bytes
from jobs.logs.log_search import LogSearch, LogSearchPage, SearchedLog
from trainhub_launch.errors import SpecError
from workspaces import process_caches

MAX_CPU_S = 2.0
NAME = "70_driver_log_0.txt"
SLOWEST_ALLOWED = [
    "a[ab]{950}[ab]{950}z",
    "(a?){350}a{350}z",
    "(a|b|c|ab|bc){250}z",
    "(a?[ab]?){300}z",
    "a.{200}z",
]
HOSTILE_TEXTS = {
    "one letter": b"a" * 400_000,
    "two letters": bytes(random.Random(1).choices(b"ab", k=400_000)),  # noqa: S311 - no secret
    "many lines": (b"ab" * 40 + b"\n") * 5000,
}


@pytest.fixture(autouse=True)
def _forget_arrivals() -> Iterator[None]:
    process_caches.clear_all()
    yield
    process_caches.clear_all()


def stored_log(
    data: bytes, *, run: str = "", name: str = NAME, moment_ms: int = 1_800_000_000_000
) -> SearchedLog:
    run = run or uuid.uuid4().hex
    begin = log_store.size(run, 1, name)
    log_store.append(run, 1, name, begin, data)
    log_timestamps.record_arrival((run, 1, name), begin, begin + len(data), moment_ms)
    found = log_search.load_log(run, 1, name, 0)
    assert found is not None
    return found


def page_within_limit(
    logs: list[SearchedLog], expression: str, *, order: str, cursor: log_search.LogCursor | None = None
) -> LogSearchPage:
    pattern = compile_pattern(expression, regex=True, case=True)
    begun = time.process_time()
    search = LogSearch(logs, pattern, 100)
    page = search.by_rank(cursor) if order == "rank" else search.by_time(cursor)
    assert time.process_time() - begun < MAX_CPU_S
    return page


@pytest.mark.parametrize(
    "expression", ["a.{999}.{999}z", "a" + "[a-c]{999}" * 30 + "z", r"\pL{100}z", r"\p{Han}{300}"]
)
def test_an_expression_that_compiles_to_a_large_program_is_refused_with_a_remedy(expression: str) -> None:
    begun = time.process_time()
    with pytest.raises(SpecError, match="repeat parts less often") as refused:
        compile_pattern(expression, regex=True, case=False)
    assert refused.value.field == "q"
    assert time.process_time() - begun < MAX_CPU_S


@pytest.mark.parametrize(
    "expression", [r"loss=nan|inf", r"(?i)error.{0,200}cuda", r"\[rank\d+\]:.*NCCL.*timeout", r"a.{0,100}b"]
)
def test_expressions_that_people_write_are_taken(expression: str) -> None:
    assert program_size(compile_pattern(expression, regex=True, case=False)) <= MAX_EXPRESSION_INSTRUCTIONS


@pytest.mark.slow
@pytest.mark.parametrize("expression", SLOWEST_ALLOWED)
@pytest.mark.parametrize(
    ("text", "order"), [("two letters", "rank"), ("one letter", "time"), ("many lines", "time")]
)
def test_the_slowest_expressions_that_are_allowed_keep_to_the_limit(
    expression: str, text: str, order: str
) -> None:
    page_within_limit([stored_log(HOSTILE_TEXTS[text])], expression, order=order)


def test_a_search_through_time_of_many_logs_keeps_to_the_limit_and_gets_on() -> None:
    """Each log has one long line that a tiny slice of time begins, so that a slice costs a window for each of
    them."""
    run, pattern = uuid.uuid4().hex, compile_pattern("a[ab]{950}[ab]{950}z", regex=True, case=True)
    line = HOSTILE_TEXTS["two letters"][: window_bytes(pattern) - 1] + b"\n"
    logs = []
    for number in range(40):
        name = f"70_driver_log_{number}.txt"
        for moment, data in ((0, line[:10]), (1000, line[10:])):
            log = stored_log(data, run=run, name=name, moment_ms=1_800_000_000_000 + number + moment)
        logs.append(log)
    cursor, pages, places = None, 0, []
    while pages < 4:
        page = page_within_limit(logs, "a[ab]{950}[ab]{950}z", order="time", cursor=cursor)
        cursor, pages = page.next, pages + 1
        if cursor is None:
            break
        places.append(page.searched_bytes)
    assert places == sorted(set(places)), "every page must get further than the one before"


@pytest.mark.parametrize("size", [1, 500])
def test_plain_text_keeps_to_the_limit(size: int) -> None:
    log = stored_log("𝐀ſ".encode() * 50_000)
    begun = time.process_time()
    LogSearch(
        [log], compile_pattern(("𝐀ſ" * size)[: min(size, 499)] + "z", regex=False, case=False), 100
    ).by_rank(None)
    assert time.process_time() - begun < MAX_CPU_S
