"""Somebody who reads the log of a run over HTTP, and waits for its next bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from asgiref.sync import sync_to_async

from jobs.models import Run
from jobs.transfer import log_waits
from live.fanout import is_watched
from live.topics import run_topic
from tests.jobs.builders import Played
from tests.jobs.raw import LOG, Headers


@dataclass
class Reader:
    """Somebody who reads the log of a run that runs."""

    client: httpx.AsyncClient
    played: Played
    run: Run
    headers: Headers

    async def read(self, query: str, headers: Headers | None = None) -> httpx.Response:
        url = f"/api/v1/runs/{self.run.pk}/logs/{LOG}?{query}"
        return await self.client.get(url, headers=headers or self.headers, timeout=60)

    async def wait(self, query: str, headers: Headers | None = None) -> asyncio.Task[httpx.Response]:
        """A request that has begun to wait."""
        before = log_waits._waits.total()
        task = asyncio.create_task(self.read(query, headers))
        await until(lambda: log_waits._waits.total() > before and is_watched(run_topic(self.run.pk)))
        return task

    async def log(self, offset: int, data: bytes) -> None:
        """The node reports these bytes."""
        await sync_to_async(self.played.log)(self.run, LOG, offset, data)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def summary(answer: httpx.Response) -> tuple[bytes, str, str, str]:
    """The bytes, how many the hub has, whether they are all, and of which attempt they are."""
    names = ("x-log-size", "x-log-complete", "x-log-attempt")
    size, complete, attempt = (answer.headers[name] for name in names)
    return answer.content, size, complete, attempt
