from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import redis

from live.fanout import fanout, is_watched, tell_here
from tests.live.test_publish import layers

pytestmark = pytest.mark.usefixtures("valkey")


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def offer(self, text: str) -> None:
        self.heard.append(text)

    def miss(self) -> None:
        self.heard.append("missed")


class TestIsWatched:
    async def test_from_the_first_who_joins_to_the_last_who_leaves(self) -> None:
        first, second = Ear(), Ear()
        assert not is_watched("telemetry.1")
        for ear in (first, second, second):
            await fanout().join(ear, "telemetry.1")
        await fanout().leave(first, "telemetry.1")
        assert is_watched("telemetry.1")
        for _ in range(2):
            await fanout().leave(second, "telemetry.1")
        assert not is_watched("telemetry.1")

    async def test_nothing_is_by_who_could_not_join(self, settings: Any) -> None:
        settings.CHANNEL_LAYERS = layers("unix:///nowhere.sock")
        ear = Ear()
        with pytest.raises(redis.ConnectionError):
            await fanout().join(ear, "telemetry.1")
        assert not is_watched("telemetry.1")
        tell_here("telemetry.1", "numbers")
        assert ear.heard == []

    async def test_is_told_to_any_thread(self) -> None:
        ear, told = Ear(), []
        await fanout().join(ear, "telemetry.2")
        asking = threading.Thread(
            target=lambda: told.append((is_watched("telemetry.2"), is_watched("telemetry.3")))
        )
        asking.start()
        asking.join()
        assert told == [(True, False)]
        await fanout().leave(ear, "telemetry.2")


class TestTellHere:
    async def test_reaches_who_listens_to_that_topic_at_once(self) -> None:
        ear, other = Ear(), Ear()
        await fanout().join(ear, "telemetry.1")
        await fanout().join(other, "telemetry.2")
        tell_here("telemetry.1", "numbers")
        assert (ear.heard, other.heard) == (["numbers"], [])
        await fanout().leave(ear, "telemetry.1")
        await fanout().leave(other, "telemetry.2")

    async def test_from_another_thread_too(self) -> None:
        ear = Ear()
        await fanout().join(ear, "telemetry.1")
        await asyncio.to_thread(tell_here, "telemetry.1", "numbers")
        async with asyncio.timeout(5):
            while not ear.heard:
                await asyncio.sleep(0)
        assert ear.heard == ["numbers"]
        await fanout().leave(ear, "telemetry.1")
