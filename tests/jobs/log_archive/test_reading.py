"""Whoever reads logs finds archived ones as before: over HTTP, in searches, on pages, and by functions."""

from __future__ import annotations

from io import StringIO
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from jobs.causes import cause_store
from jobs.logs import lanes, log_search, log_store
from jobs.logs.log_follower import LogFollower
from jobs.logs.log_pattern import compile_pattern
from jobs.logs.log_search import LogHit, LogSearch
from jobs.logs.log_timestamps import LogTimeline
from jobs.models import ArchivedLog, Attempt, Member
from jobs.sources.installed_packages import installed_packages
from tests.hub import eventually
from tests.jobs.builders import ended as ended_rank
from tests.jobs.log_archive.conftest import LINES, LOG, LOGS, EndedRun, drop_copies, read_whole
from tests.jobs.raw import Headers, bearing
from tests.people import client_of, token_of
from tests.stores.s3_server import S3Server
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.object_store.errors import StoreUnavailable
from workspaces.stored_files import blob_uploads, blobs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]


def hits(run: str, text: str) -> list[tuple[object, ...]]:
    log = log_search.load_log(run, 1, LOG, 0)
    assert log is not None
    found: list[LogHit] = []
    cursor = None
    while True:
        page = LogSearch([log], compile_pattern(text, regex=False, case=False), 1000).by_time(cursor)
        found += page.hits
        cursor = page.next
        if cursor is None:
            return [(hit.match, hit.line, hit.arrival) for hit in found]


class TestRanges:
    def test_come_from_the_store_alone_and_only_they(self, ended: EndedRun) -> None:
        ended.archive()
        sent = ended.store.sent
        assert log_store.read(ended.id, 1, LOG, 500_000, 1000) == LINES[500_000:501_000]
        assert ended.store.sent - sent == 1000
        assert not blobs.path(ArchivedLog.objects.get(name=LOG).sha256).exists()

    def test_end_with_the_log(self, ended: EndedRun) -> None:
        ended.archive()
        sent = ended.store.sent
        assert log_store.read(ended.id, 1, LOG, len(LINES) - 5, 1000) == LINES[-5:]
        assert log_store.read(ended.id, 1, LOG, len(LINES), 1000) == b""
        assert log_store.read(ended.id, 1, LOG, 0, 0) == b""
        assert log_store.read(ended.id, 1, "none.txt", 0, 9) == b""
        assert ended.store.sent - sent == 5

    def test_come_from_a_copy_if_there_is_one(self, ended: EndedRun) -> None:
        ended.archive(is_local=True)
        sent = ended.store.sent
        assert read_whole(ended.run, LOG) == LINES
        assert ended.store.sent == sent

    def test_after_the_hub_has_left_the_store(self, ended: EndedRun, settings: Any) -> None:
        ended.archive(is_local=True)
        settings.BLOB_STORE = None
        assert read_whole(ended.run, LOG) == LINES
        assert log_store.log_sizes(ended.id, 1) == {name: len(content) for name, content in LOGS.items()}


class TestSearch:
    def test_finds_the_same_lines_with_the_same_numbers_and_times(self, ended: EndedRun) -> None:
        before = hits(ended.id, "line 5999")
        assert len(before) == 11
        ended.archive()
        assert hits(ended.id, "line 5999") == before
        # A search needs the file, which stays as a copy.
        assert blobs.path(ArchivedLog.objects.get(name=LOG).sha256).exists()


class TestTimes:
    def test_are_those_of_the_live_log(self, ended: EndedRun) -> None:
        before = LogTimeline.load(ended.id, 1, LOG)
        ended.archive()
        after = LogTimeline.load(ended.id, 1, LOG)
        assert (after.size, after.ends, after.firsts, after.last_ms) == (
            before.size,
            before.ends,
            before.firsts,
            before.last_ms,
        )
        with pytest.raises(FileNotFoundError):
            LogTimeline.load(ended.id, 1, "none.txt")


class TestLanes:
    def test_show_the_same(self, ended: EndedRun) -> None:
        def shown() -> list[tuple[object, ...]]:
            members = list(Member.objects.filter(attempt__run=ended.id))
            built = lanes.build_lanes(ended.run, 1, members, None)
            return [(lane.name, lane.size, lane.tail, lane.written_ms, lane.gaps) for lane in built.all]

        before = shown()
        assert before[0][2] == LINES[-lanes.TAIL_BYTES :]
        ended.archive()
        sent = ended.store.sent
        assert shown() == before
        assert ended.store.sent - sent == lanes.TAIL_BYTES + len(LOGS["logs/deep/own.txt"])


class TestFollowers:
    def test_write_the_whole_log_and_end(self, ended: EndedRun) -> None:
        ended.archive()
        out = StringIO()
        LogFollower(ended.id, out=out.write, note=lambda _: None).follow_to_end()
        assert out.getvalue().encode() == LINES


class TestCauses:
    def test_are_still_read_out_of_the_log(self, who: Principal, store: S3Server) -> None:
        text = b"x\n" * 1000 + b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    f()\n'
        ended = EndedRun(who, store, {LOG: text + b"ValueError: bad value\n"}, ended_rank(0, 1))
        expected = cause_store.for_run(ended.run)
        assert expected is not None
        assert "bad value" in expected.line
        ended.archive()
        Attempt.objects.update(cause=None)
        assert cause_store.for_run(ended.run) == expected


class TestPackages:
    def test_of_the_build_log(self, who: Principal, store: S3Server) -> None:
        ended = EndedRun(who, store, {ENVIRONMENT_LOG: b"Successfully installed numpy-2.1.0\n"})
        ended.archive()
        assert installed_packages(ended.id, 1) == {"numpy": "2.1.0"}


class TestHttp:
    """The raw routes; each test archives after it has noted what the live log answers."""

    @pytest.fixture
    def headers(self, who: Principal) -> Headers:
        return bearing(token_of(who.user))

    @pytest.fixture
    def address(self, ended: EndedRun) -> str:
        return f"/api/v1/runs/{ended.id}/logs/{LOG}"

    async def test_ranges(
        self, client: httpx.AsyncClient, ended: EndedRun, headers: Headers, address: str
    ) -> None:
        queries = ("", "?offset=1000&limit=50", f"?offset={len(LINES)}&wait_s=5", "?offset=9999999&limit=10")
        before = [await client.get(address + query, headers=headers) for query in queries]
        await sync_to_async(ended.archive)()
        after = [await client.get(address + query, headers=headers) for query in queries]
        assert [answer.content for answer in after] == [answer.content for answer in before]
        assert [answer.headers for answer in after] == [answer.headers for answer in before]
        assert after[2].headers["x-log-complete"] == "true"

    async def test_the_whole_file_with_ranges_and_conditions(
        self, client: httpx.AsyncClient, ended: EndedRun, headers: Headers, address: str
    ) -> None:
        address += "?download=1"
        before = await client.get(address, headers=headers)
        await sync_to_async(ended.archive)()
        conditions = {"If-None-Match": before.headers["etag"]}
        assert (await client.get(address, headers={**headers, **conditions})).status_code == 304
        sent = ended.store.sent
        part = await client.get(
            address, headers={**headers, "Range": "bytes=100-199", "If-Range": before.headers["etag"]}
        )
        assert (part.status_code, part.content) == (206, LINES[100:200])
        assert ended.store.sent - sent == 100
        after = await client.get(address, headers=headers)
        assert after.content == LINES
        assert after.headers == before.headers
        # It has left a copy, from which several ranges are sent as well.
        sha256 = await ArchivedLog.objects.values_list("sha256", flat=True).aget(name=LOG)
        assert eventually(blobs.path(sha256).exists)
        several = await client.get(address, headers={**headers, "Range": "bytes=0-9,100-109"})
        assert several.status_code == 206
        assert LINES[100:110] in several.content

    async def test_while_the_store_is_away_only_the_first_waits_for_it(
        self, client: httpx.AsyncClient, ended: EndedRun, headers: Headers, address: str
    ) -> None:
        await sync_to_async(ended.archive)()
        ended.store.is_away = True
        first = await client.get(address, headers=headers)
        requests = len(ended.store.requests)
        second = await client.get(address, headers=headers)
        assert (second.status_code, second.json()) == (503, first.json())
        assert len(ended.store.requests) == requests
        ended.store.is_away = False
        # As after a while.
        process_caches.clear_all()
        assert (await client.get(f"{address}?limit=9", headers=headers)).content == LINES[:9]

    async def test_a_download_that_begins_before_the_file_goes(
        self, client: httpx.AsyncClient, ended: EndedRun, headers: Headers, address: str
    ) -> None:
        await sync_to_async(ended.store_logs)()
        answer = await client.get(address + "?download=1", headers=headers)
        assert answer.content == LINES

    async def test_a_store_that_is_away_is_named_and_no_log_looks_empty(
        self, client: httpx.AsyncClient, ended: EndedRun, headers: Headers, address: str
    ) -> None:
        await sync_to_async(ended.archive)()
        ended.store.is_away = True
        for query in ("", "?offset=1000", "?download=1"):
            answer = await client.get(address + query, headers=headers)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
            assert "BLOB_STORE_ENDPOINT" in answer.json()["detail"]
        # Where no bytes are read, the answer is the same as always.
        end = await client.get(f"{address}?offset={len(LINES)}", headers=headers)
        assert (end.status_code, end.headers["x-log-complete"]) == (200, "true")
        ended.store.is_away = False
        assert (await client.get(address + "?download=1", headers=headers)).content == LINES


class TestPages:
    """What Django answers: pages and its part of the API."""

    @pytest.fixture
    def browser(self, who: Principal) -> Client:
        return client_of(who.user)

    def test_api_and_pages_show_the_log(self, ended: EndedRun, browser: Client) -> None:
        api, page = f"/api/v1/runs/{ended.id}", f"/runs/{ended.run.number}/"
        addresses = (f"{api}/logs/", f"{api}/logs/search/?q=line+59999")
        before = [browser.get(address).json() for address in addresses]
        assert before[1]["results"]
        ended.archive()
        assert [browser.get(address).json() for address in addresses] == before
        lanes_of_page = browser.get(f"{page}lanes/").json()["lanes"]
        assert "line 59999 of the log" in str(lanes_of_page)

    def test_a_store_that_is_away_is_named(self, ended: EndedRun, browser: Client) -> None:
        ended.archive()
        ended.store.is_away = True
        answer = browser.get(f"/api/v1/runs/{ended.id}/logs/search/?q=line")
        assert answer.status_code == 503
        assert "BLOB_STORE_ENDPOINT" in answer.json()["title"] + answer.json().get("detail", "")
        # The list of logs needs no store, and the lanes go on without last lines.
        assert browser.get(f"/api/v1/runs/{ended.id}/logs/").status_code == 200
        lane = browser.get(f"/runs/{ended.run.number}/lanes/").json()["lanes"][0]
        assert (lane["size"], lane["line"]) == (len(LINES), "")

    def test_a_lost_object_is_named(self, ended: EndedRun) -> None:
        ended.archive()
        ended.store.objects["birds"].clear()
        with pytest.raises(StoreUnavailable, match="has gone from the store"):
            log_store.read(ended.id, 1, LOG, 0, 10)

    def test_a_lost_file_without_the_store_is_named(self, ended: EndedRun, settings: Any) -> None:
        ended.archive()
        settings.BLOB_STORE = None
        with pytest.raises(StoreUnavailable, match="are missing on the hub"):
            log_store.read(ended.id, 1, LOG, 0, 10)
        with pytest.raises(StoreUnavailable, match="are missing on the hub"):
            log_store.open_log(ended.id, 1, LOG)


def test_before_the_upload_the_common_folder_of_runs_answers(ended: EndedRun) -> None:
    """The folder of stored files may be another one on each server."""
    ended.store_logs()
    drop_copies()
    assert read_whole(ended.run, LOG) == LINES
    assert ended.remove_files() == 0
    assert ended.local() == set(LOGS)


def test_runs_of_the_same_output_share_an_object(ended: EndedRun, who: Principal) -> None:
    second = EndedRun(who, ended.store, {LOG: LINES})
    ended.store_logs()
    blob_uploads.upload_waiting()
    assert second.remove_files() >= 1
    process_caches.clear_all()
    drop_copies()
    assert read_whole(ended.run, LOG) == read_whole(second.run, LOG) == LINES
    assert len({*ArchivedLog.objects.filter(name=LOG).values_list("sha256", flat=True)}) == 1
