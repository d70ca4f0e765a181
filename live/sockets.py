"""One browser's socket: written to at once while it keeps up, with a bounded queue while it does not."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any

from live.messages import Hint
from live.publish import encode

MAX_QUEUED_MESSAGES = 256
MAX_QUEUED_CHARS = 1024 * 1024
HINT = encode(Hint(type="hint"))
logger = logging.getLogger(__name__)

Send = Callable[[Mapping[str, Any]], Coroutine[Any, Any, None]]


class Socket:
    """`offer` never waits. A socket too slow for its queue loses the queue and gets one hint instead."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: deque[str] = deque()
        self._chars = 0
        self._missed = False
        self._is_busy = True
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """The browser's end is open: what was offered so far may go, and the rest as it comes."""
        self._task = asyncio.create_task(self._empty())

    async def stop(self) -> None:
        self._is_busy = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def offer(self, text: str) -> None:
        if not self._is_busy:
            self._write(text)
        elif not self._missed:
            # With a hint still to be sent, that one covers this text too.
            self._queue.append(text)
            self._chars += len(text)
            if len(self._queue) > MAX_QUEUED_MESSAGES or self._chars > MAX_QUEUED_CHARS:
                self.miss()

    def miss(self) -> None:
        """Something was lost on the way to this socket: say so, instead of whatever waits."""
        self._queue.clear()
        self._chars = 0
        self._missed = True
        if not self._is_busy:
            self._missed = False
            self._write(HINT)

    def _write(self, text: str) -> None:
        """Run `send` up to where it would wait, which it does only once the connection's buffer is full.

        Waking a task per socket and message instead costs half as much again as the message itself.
        """
        sending = self._send({"type": "websocket.send", "text": text})
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        except OSError as error:
            self._gone(error)
            return
        self._is_busy = True
        self._task = asyncio.create_task(self._empty(_Rest(sending, waits_for)))

    async def _empty(self, rest: Awaitable[None] | None = None) -> None:
        try:
            if rest is not None:
                await rest
            while self._missed or self._queue:
                await self._send({"type": "websocket.send", "text": self._next()})
        except OSError as error:
            self._gone(error)
        else:
            self._is_busy = False

    def _next(self) -> str:
        if self._missed:
            self._missed = False
            return HINT
        text = self._queue.popleft()
        self._chars -= len(text)
        return text

    def _gone(self, error: OSError) -> None:
        """The server's word for a browser that left; the consumer is told by itself and stops us."""
        logger.debug("a socket went away: %r", error)
        self._is_busy = True


class _Rest:
    """What is left of a coroutine that was run up to its first wait."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        yield self._waits_for
        yield from self._coroutine.__await__()
