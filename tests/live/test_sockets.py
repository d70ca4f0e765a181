from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from live.sockets import HINT, MAX_QUEUED_CHARS, MAX_QUEUED_MESSAGES, Socket


class Browser:
    """The far end: takes messages only while `reading`."""

    def __init__(self) -> None:
        self.reading = asyncio.Event()
        self.got: list[str] = []
        self.socket = Socket(self._send)
        self.socket.start()

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self.reading.wait()
        self.got.append(message["text"])

    async def until(self, last: str) -> list[str]:
        async with asyncio.timeout(5):
            while last not in self.got:
                await asyncio.sleep(0)
        return self.got


class GoneBrowser:
    """The far end of a connection that is broken."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.socket = Socket(self._send)

    async def _send(self, message: Mapping[str, Any]) -> None:
        self.attempts.append(message["text"])
        raise ConnectionResetError


class TestSlowSocket:
    async def test_gets_everything_while_its_queue_holds(self) -> None:
        browser = Browser()
        for number in range(MAX_QUEUED_MESSAGES):
            browser.socket.offer(f"m{number}")
        browser.reading.set()
        assert len(await browser.until(f"m{MAX_QUEUED_MESSAGES - 1}")) == MAX_QUEUED_MESSAGES
        await browser.socket.stop()

    async def test_gets_one_hint_instead_of_an_endless_queue(self) -> None:
        browser = Browser()
        for number in range(MAX_QUEUED_MESSAGES * 3):
            browser.socket.offer(f"m{number}")
        browser.reading.set()
        assert await browser.until(HINT) == [HINT]
        browser.socket.offer("afterwards")
        assert await browser.until("afterwards") == [HINT, "afterwards"]
        await browser.socket.stop()

    async def test_is_measured_in_characters_too(self) -> None:
        browser = Browser()
        for _ in range(3):
            browser.socket.offer("x" * (MAX_QUEUED_CHARS // 2))
        browser.reading.set()
        assert await browser.until(HINT) == [HINT]
        await browser.socket.stop()


class TestKeepingUp:
    async def test_is_written_to_at_once_without_a_task(self) -> None:
        browser = Browser()
        browser.reading.set()
        browser.socket.offer("first")
        await browser.until("first")
        tasks = asyncio.all_tasks()
        for number in range(1000):
            browser.socket.offer(f"m{number}")
        assert asyncio.all_tasks() == tasks
        assert browser.got[1:] == [f"m{number}" for number in range(1000)]

    async def test_falls_behind_and_catches_up_in_order(self) -> None:
        browser = Browser()
        browser.reading.set()
        browser.socket.offer("m0")
        await browser.until("m0")
        for first in (1, 4, 7):
            browser.reading.clear()
            for number in range(first, first + 3):
                browser.socket.offer(f"m{number}")
            await asyncio.sleep(0)
            browser.reading.set()
            await browser.until(f"m{first + 2}")
        assert browser.got == [f"m{number}" for number in range(10)]
        await browser.socket.stop()

    async def test_that_missed_something_is_told_at_once(self) -> None:
        browser = Browser()
        browser.reading.set()
        browser.socket.offer("m0")
        await browser.until("m0")
        browser.socket.miss()
        assert browser.got == ["m0", HINT]


class TestGone:
    async def test_stopping_a_blocked_socket_leaves_no_task(self) -> None:
        before = asyncio.all_tasks()
        browser = Browser()
        browser.socket.offer("m0")
        await asyncio.sleep(0)
        await browser.socket.stop()
        assert asyncio.all_tasks() == before

    async def test_a_browser_that_left_ends_its_writer_quietly(self) -> None:
        browser = GoneBrowser()
        browser.socket.offer("m0")
        before = asyncio.all_tasks()
        browser.socket.start()
        (writer,) = asyncio.all_tasks() - before
        await writer
        browser.socket.offer("m1")
        assert browser.attempts == ["m0"]
        await browser.socket.stop()

    async def test_a_browser_that_left_after_it_kept_up_is_written_to_no_more(self) -> None:
        browser = GoneBrowser()
        before = asyncio.all_tasks()
        browser.socket.start()
        (writer,) = asyncio.all_tasks() - before
        await writer
        for text in ("m0", "m1"):
            browser.socket.offer(text)
        assert browser.attempts == ["m0"]
        await browser.socket.stop()
