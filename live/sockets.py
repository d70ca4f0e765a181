"""One browser's socket: a bounded queue and the task that empties it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from live.messages import Hint
from live.publish import encode

MAX_QUEUED_MESSAGES = 256
MAX_QUEUED_CHARS = 1024 * 1024
HINT = encode(Hint(type="hint"))
logger = logging.getLogger(__name__)

Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Socket:
    """`offer` never waits. A socket too slow for its queue loses the queue and gets one hint instead."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: deque[str] = deque()
        self._chars = 0
        self._missed = False
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def offer(self, text: str) -> None:
        if self._missed:
            # The hint still to be sent covers this one too.
            return
        self._queue.append(text)
        self._chars += len(text)
        if len(self._queue) > MAX_QUEUED_MESSAGES or self._chars > MAX_QUEUED_CHARS:
            self.miss()
        else:
            self._awake()

    def miss(self) -> None:
        """Something was lost on the way to this socket: say so, instead of whatever waits."""
        self._queue.clear()
        self._chars = 0
        self._missed = True
        self._awake()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _awake(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _run(self) -> None:
        try:
            while True:
                await self._send({"type": "websocket.send", "text": await self._next()})
        except OSError as error:
            # The server's word for a browser that has gone; the consumer is told by itself.
            logger.debug("a socket went away: %r", error)

    async def _next(self) -> str:
        while not (self._missed or self._queue):
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        if self._missed:
            self._missed = False
            return HINT
        text = self._queue.popleft()
        self._chars -= len(text)
        return text
