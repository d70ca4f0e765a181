"""Logs of a run whose hub breaks off, of a run that is silent, and of one that has no ranks yet."""

from __future__ import annotations

import json
import threading
import time
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.sdk.scripted_hub import Reply, Request, ScriptedHub, problem
from trainhub_sdk.api_connection import ApiConnection
from trainhub_sdk.errors import HubUnreachable, NotFound
from trainhub_sdk.run import Run

RANK_0 = {"name": "70_driver_log.txt", "rank": 0, "size": 8, "complete": False, "url": "/log"}
PREPARATION = {"name": "55_preparation_log.txt", "rank": None, "size": 0, "complete": False, "url": "/log"}


def run_of(url: str) -> Run:
    return Run.of(ApiConnection(url, retry_s=0), {"id": "a" * 32, "number": 12, "attempt": 1})


def answers(state: str, *logs: dict[str, Any], log: list[Reply]) -> Any:
    """Replies as a hub whose run is in this state; `log`: in turn, for requests for the log itself."""

    def reply(request: Request) -> Reply:
        if request.path.startswith("/log"):
            return log.pop(0) if len(log) > 1 else log[0]
        is_list = request.path.endswith("/logs/")
        body = {"logs": logs} if is_list else {"id": "a" * 32, "number": 12, "attempt": 1, "state": state}
        return Reply(body=json.dumps(body).encode())

    return reply


def whole(text: bytes) -> Reply:
    return Reply(body=text, headers={"X-Log-Complete": "true", "X-Log-Size": str(len(text))})


def test_a_log_that_breaks_off_is_read_again_from_the_same_place() -> None:
    text = b"line 1\nline 2\n"
    cut = Reply(body=text, headers=whole(text).headers, cut=5)
    hub = ScriptedHub(answers("Completed", RANK_0, log=[cut, whole(text)]))
    with hub.serving() as url:
        assert "".join(run_of(url).logs(follow=True)) == text.decode()
    assert [request.path for request in hub.requests if request.path.startswith("/log")] == [
        "/log?offset=0&wait_s=15",
        "/log?offset=0",
    ]


class TwoRanks:
    """A run of two ranks. A request for a log waits, as at a hub, until something was written behind its
    offset, or for `hold_s`."""

    def __init__(self, hold_s: float = 15) -> None:
        self.written = {"/log0": b"", "/log1": b""}
        self.is_complete = self.is_over = False
        self.hold_s = hold_s
        self.changed = threading.Condition()
        self.hub = ScriptedHub(self._reply)

    def write(self, log: str, text: bytes, *, is_complete: bool = False) -> None:
        with self.changed:
            self.written[log] += text
            self.is_complete = is_complete
            self.changed.notify_all()

    def _reply(self, request: Request) -> Reply:
        path, _, query = request.path.partition("?")
        if path not in self.written:
            state = "Completed" if self.is_over or self.is_complete else "Running"
            logs = [{**RANK_0, "rank": rank, "url": f"/log{rank}", "size": 0} for rank in range(2)]
            body = {"logs": logs} if path.endswith("/logs/") else {"id": "a" * 32, "number": 12, "attempt": 1}
            return Reply(body=json.dumps({**body, "state": state}).encode())
        offset = int(parse_qs(query)["offset"][0])
        with self.changed:
            hold_s = self.hold_s if "wait_s" in query else 0
            self.changed.wait_for(lambda: len(self.written[path]) > offset or self.is_complete, hold_s)
            text = self.written[path]
            headers = {"X-Log-Complete": str(self.is_complete).lower(), "X-Log-Size": str(len(text))}
            return Reply(body=text[offset:], headers=headers)


def test_a_line_of_any_rank_is_there_at_once() -> None:
    run = TwoRanks()
    with run.hub.serving() as url:
        parts = run_of(url).all_logs(follow=True)
        began = time.monotonic()
        for number, log in enumerate(("/log1", "/log0", "/log1")):
            run.write(log, b"line %d\n" % number)
            part = next(parts)
            assert (part.rank, part.text) == (int(log[-1]), f"line {number}\n")
        assert time.monotonic() - began < run.hold_s / 2
        run.write("/log0", b"last\n", is_complete=True)
        assert [part.text for part in parts] == ["last\n"]


def test_logs_that_never_become_complete_end_with_the_run() -> None:
    """As of a host that was lost."""
    run = TwoRanks(hold_s=0.2)
    with run.hub.serving() as url:
        parts = run_of(url).all_logs(follow=True)
        run.write("/log0", b"line\n")
        assert next(parts).text == "line\n"
        run.is_over = True
        assert list(parts) == []


def test_an_error_at_one_of_several_logs_is_raised() -> None:
    run = TwoRanks()
    del run.written["/log1"]
    run.hub.replies = [lambda request: problem(404) if "/log1" in request.path else run._reply(request)]
    with run.hub.serving() as url, pytest.raises(NotFound):
        list(run_of(url).all_logs(follow=True))


def test_an_answer_that_breaks_off_again_and_again_is_an_error_with_the_address() -> None:
    hub = ScriptedHub(Reply(body=b'{"id": "a"}', cut=3))
    with hub.serving() as url, pytest.raises(HubUnreachable, match=url):
        run_of(url).refresh()


def test_waiting_with_the_log_of_a_silent_run_ends_in_time() -> None:
    empty = Reply(body=b"", headers={"X-Log-Complete": "false", "X-Log-Size": "0"})
    hub = ScriptedHub(answers("Running", RANK_0, log=[empty]))
    started_at = time.monotonic()
    with hub.serving() as url, pytest.raises(TimeoutError, match=r"Run 12 is Running after 0\.5 s"):
        run_of(url).wait(0.5, show_output=True)
    assert time.monotonic() - started_at < 10


def test_a_rank_that_is_not_there_is_named_and_one_that_is_not_planned_yet_has_no_text() -> None:
    hub = ScriptedHub(answers("Preparing", PREPARATION, log=[whole(b"")]))
    with hub.serving() as url:
        assert list(run_of(url).logs(rank=3)) == []
        hub.replies = [answers("Running", RANK_0, log=[whole(b"")])]
        with pytest.raises(NotFound, match="Run 12 has no rank 3: it has 0 to 0"):
            list(run_of(url).logs(rank=3))
