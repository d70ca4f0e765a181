"""Sends messages to one browser: written at once while the browser keeps up, and queued otherwise."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator

from live.messages import Hint
from live.publish import encode

MAX_QUEUED_MESSAGES = 256
MAX_QUEUED_CHARS = 1024 * 1024
HINT = encode(Hint(type="hint"))
logger = logging.getLogger(__name__)

Send = Callable[[dict[str, str]], Coroutine[object, None, None]]


class Socket:
    """The socket of one browser. `offer` never blocks. If its queue is full, the queue is dropped and one
    hint is sent instead."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._queue: deque[str] = deque()
        self._chars = 0
        self._missed = False
        self._is_busy = True
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to send: the handshake is complete. Messages offered before are sent first."""
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
        """Sends a hint instead of the queued messages, because messages to this socket were lost."""
        self._queue.clear()
        self._chars = 0
        self._missed = True
        if not self._is_busy:
            self._missed = False
            self._write(HINT)

    def _write(self, text: str) -> None:
        """Runs `send` up to the point where it would wait, and continues it in a task only then."""
        # It waits only once the connection's buffer is full. A task for each socket and message would cost
        # half as much again as the message itself.
        sending = self._send({"type": "websocket.send", "text": text})
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        except OSError as error:
            self._closed_error(error)
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
            self._closed_error(error)
        else:
            self._is_busy = False

    def _next(self) -> str:
        if self._missed:
            self._missed = False
            return HINT
        text = self._queue.popleft()
        self._chars -= len(text)
        return text

    def _closed_error(self, error: OSError) -> None:
        """Stops writing after the server has reported that the browser left."""
        # The consumer's `disconnect` is called separately, and stops this socket.
        logger.debug("a socket went away: %r", error)
        self._is_busy = True


class _Rest:
    """The remainder of a coroutine that was run up to its first wait, as an awaitable."""

    # A coroutine cannot be awaited once it has started. What it yielded first, the future that it waits for,
    # has to reach the event loop before the coroutine may continue.

    def __init__(self, coroutine: Coroutine[object, None, None], waits_for: object) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, None, None]:
        yield self._waits_for
        yield from self._coroutine.__await__()
