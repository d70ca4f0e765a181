"""Reports, claims and submissions do not stand in each other's way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from trainhub.web import submission_pace
from trainhub.web.submission_pace import MAX_DELAY_S, SubmissionPace
from workspaces.http import threads

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


async def test_a_report_does_not_wait_behind_claims() -> None:
    """Nor do claims behind reports."""
    released = threading.Event()
    claims = [asyncio.create_task(threads.in_turn_of_claims(released.wait, 20)) for _ in range(20)]
    try:
        async with asyncio.timeout(10):
            while threads.waiting_in_turn() < len(claims) - 1:
                await asyncio.sleep(0.01)
            assert await threads.in_turn(lambda: "report") == "report"
            reports = [asyncio.create_task(threads.in_turn(released.wait, 20)) for _ in range(5)]
            while threads.waiting_in_turn() < len(claims) - 1 + len(reports) - 2:
                await asyncio.sleep(0.01)
    finally:
        released.set()
        await asyncio.gather(*claims)
    await asyncio.gather(*reports)
    assert threads.waiting_in_turn() == 0


@pytest.mark.parametrize(
    ("method", "path", "waiting", "seconds"),
    [
        ("POST", "/api/v1/runs/", 0, 0.0),
        ("POST", "/api/v1/runs/", 10, 0.5),
        ("POST", "/api/v1/runs/", 1000, MAX_DELAY_S),
        ("GET", "/api/v1/runs/", 1000, 0.0),
        ("POST", "/api/v1/runs/preview/", 1000, 0.0),
        ("POST", "/api/v1/node/report/", 1000, 0.0),
    ],
)
async def test_only_those_who_submit_wait_while_nodes_wait(
    method: str, path: str, waiting: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept, answered = list[float](), list[str]()

    async def sleep(delay: float) -> None:
        slept.append(delay)

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        answered.append(scope["path"])

    monkeypatch.setattr(submission_pace, "waiting_in_turn", lambda: waiting)
    monkeypatch.setattr(submission_pace, "sleep", sleep)
    scope = {"type": "http", "method": method, "path": path}
    await SubmissionPace(app)(scope, None, None)  # type: ignore[arg-type]
    assert (sum(slept), answered) == (seconds, [path])
