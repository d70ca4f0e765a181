"""Searches in archived logs fetch the small ones several at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from jobs.logs import archived_logs, log_search, log_store
from jobs.logs.log_pattern import compile_pattern
from jobs.logs.log_search import LogCursor, LogSearch, LogSearchPage
from jobs.models import ArchivedLog
from tests.hub import eventually
from tests.jobs.log_archive.conftest import EndedRun, drop_copies
from tests.stores.s3_server import S3Server
from workspaces.access import Principal
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import StoredObject
from workspaces.stored_files import blob_cache, blobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
COUNT = 6


@pytest.fixture
def archived(who: Principal, store: S3Server) -> EndedRun:
    logs = {f"logs/part-{number}.txt": f"needle {number}\n".encode() * 100 for number in range(COUNT)}
    run = EndedRun(who, store, logs)
    run.archive()
    return run


def search_page(run: EndedRun, limit: int, cursor: LogCursor | None = None) -> LogSearchPage:
    loaded = [log_search.load_log(run.id, 1, name, None) for name in log_store.log_sizes(run.id, 1)]
    logs = [log for log in loaded if log is not None and log.name.endswith(".txt")]
    return LogSearch(logs, compile_pattern("needle", regex=False, case=False), limit).by_rank(cursor)


def copied() -> set[str]:
    return {row.name for row in ArchivedLog.objects.all() if blobs.path(row.sha256).exists()}


def test_several_are_fetched_at_a_time(archived: EndedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    read, together = blob_cache.read_object, threading.Barrier(COUNT - 1, timeout=30)

    def read_together(row: StoredObject, start: int, end: int) -> Iterator[bytes]:
        if threading.current_thread().name.startswith("log-copies"):
            together.wait()
        yield from read(row, start, end)

    monkeypatch.setattr(blob_cache, "read_object", read_together)
    found, cursor = 0, None
    while True:
        page = search_page(archived, 1000, cursor)
        found, cursor = found + len(page.hits), page.next
        if cursor is None:
            break
    assert found == COUNT * 100
    assert not together.broken


def test_a_page_fetches_on_from_where_it_begins(archived: EndedRun) -> None:
    page = search_page(archived, 350)
    assert page.next is not None
    assert page.next.name == "logs/part-3.txt"
    drop_copies()
    search_page(archived, 1000, page.next)
    expected = {f"logs/part-{number}.txt" for number in range(3, COUNT)}
    eventually(lambda: copied() == expected, 30, "the following logs are copied")


def test_large_ones_are_fetched_when_their_turn_comes(
    archived: EndedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archived_logs, "MAX_AHEAD_BYTES", 10)
    assert len(search_page(archived, 50).hits) == 50
    assert copied() == {"logs/part-0.txt"}


def test_a_store_that_is_away_ends_the_search(archived: EndedRun) -> None:
    archived.store.is_away = True
    with pytest.raises(StoreUnavailable):
        search_page(archived, 1000)
    assert not copied()
