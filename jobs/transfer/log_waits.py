"""Delays the answer to a request for a log until there are bytes at its offset.

Bytes are noticed by the message that the hub publishes when it has stored them. Messages may be lost, so the
stored log is also read once a second."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import NamedTuple

from django.conf import settings
from starlette.requests import Request

from jobs.logs import log_store
from live import server_state
from live.fanout import fanout
from live.listeners import Listener
from live.messages import Message
from live.topics import access_topic, run_topic
from workspaces.access import Principal
from workspaces.authentication.token_text import digest
from workspaces.http.problems import Problem
from workspaces.http.scopes import bearer
from workspaces.http.threads import in_thread

MAX_WAIT_S = 20
MAX_WAITS = 256
MAX_WAITS_PER_TOKEN = 32
LOOK_EVERY_S = 1.0
# How long the channel layer may take to join or to leave the topics.
LAYER_TIMEOUT_S = 1.0
# After these the person may have lost access, or the run may have another attempt, or the log its end.
_STATE_MESSAGES = ("access.changed", "run.changed", "build.changed")
Locate = Callable[[], Awaitable[tuple[str, int]]]
logger = logging.getLogger(__name__)
# The requests of this process that wait, by the digest of their token or session.
_waits: Counter[str] = Counter()


class LogPosition(NamedTuple):
    """The place in a log from which on a request wants bytes."""

    run: str
    attempt: int
    name: str
    offset: int


async def wait_for_bytes(
    request: Request, who: Principal, position: LogPosition, locate: Locate, wait_s: float
) -> bool:
    """Waits until there are bytes at the position, the log is complete, another attempt has become the one to
    read, the server stops, or `wait_s` is over. Returns False at once if too many requests wait already.

    `locate` checks access again, and returns the run and the attempt to read now. Whoever gets True must call
    it before they answer. Raises what `locate` raises, and Problem if the client has left."""
    with _place(_credential(request)) as has_place:
        if not has_place:
            return False
        deadline = asyncio.get_running_loop().time() + wait_s
        wakeup = Wakeup(position)
        topics = (run_topic(position.run), access_topic(who.user.pk))
        async with _membership(wakeup, topics), _disconnect_watch(request, wakeup):
            while not await _is_over(wakeup, position, locate):
                remaining_s = deadline - asyncio.get_running_loop().time()
                if remaining_s <= 0:
                    break
                await wakeup.pause(min(LOOK_EVERY_S, remaining_s))
    return True


class Wakeup:
    """Ends the pauses of one request that waits for bytes of a log. A listener of the topics of its run and
    its person."""

    def __init__(self, position: LogPosition) -> None:
        self._position = position
        self._event = asyncio.Event()
        # The first check also covers what happened before the topics were joined.
        self.needs_check = True
        self.is_disconnected = False

    async def pause(self, seconds: float) -> None:
        """Waits for a message that concerns the request, but not longer than `seconds`."""
        timer = asyncio.get_running_loop().call_later(seconds, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
        # Cleared before the caller looks, so that what happens meanwhile ends the next pause.
        self._event.clear()

    def offer(self, text: str) -> None:
        message: Message = json.loads(text)
        if message["type"] in _STATE_MESSAGES:
            self.miss()
        elif message["type"] == "log.appended":
            run, attempt, name, offset = self._position
            is_this_log = (message["run"], message["attempt"], message["name"]) == (run, attempt, name)
            if is_this_log and message["offset"] + message["size"] > offset:
                self._event.set()

    def miss(self) -> None:
        self.needs_check = True
        self._event.set()

    def disconnect(self) -> None:
        self.is_disconnected = True
        self._event.set()


async def _is_over(wakeup: Wakeup, position: LogPosition, locate: Locate) -> bool:
    if wakeup.is_disconnected:
        # Nobody is left to read this.
        raise Problem(HTTPStatus.BAD_REQUEST, "Cut off", "The client has left.")
    if server_state.is_stopping():
        return True
    if wakeup.needs_check:
        wakeup.needs_check = False
        if await locate() != (position.run, position.attempt):
            return True
    return await in_thread(_is_readable, position)


def _is_readable(position: LogPosition) -> bool:
    run, attempt, name, offset = position
    return log_store.size(run, attempt, name) > offset or log_store.is_complete(run, attempt, name)


@contextmanager
def _place(credential: str) -> Iterator[bool]:
    """Counts a request that waits. Gives False if there are too many already."""
    if _waits.total() >= MAX_WAITS or _waits[credential] >= MAX_WAITS_PER_TOKEN:
        yield False
        return
    _waits[credential] += 1
    try:
        yield True
    finally:
        _waits[credential] -= 1
        if not _waits[credential]:
            del _waits[credential]


def _credential(request: Request) -> str:
    return digest(bearer(request.scope) or request.cookies.get(settings.SESSION_COOKIE_NAME, ""))


@asynccontextmanager
async def _membership(listener: Listener, topics: Sequence[str]) -> AsyncIterator[None]:
    """Lets the listener have the messages of the topics, where the channel layer permits."""
    try:
        await _change_all(fanout().join, listener, topics)
        yield
    finally:
        await _change_all(fanout().leave, listener, topics)


async def _change_all(
    change: Callable[[Listener, str], Awaitable[None]], listener: Listener, topics: Sequence[str]
) -> None:
    try:
        async with asyncio.timeout(LAYER_TIMEOUT_S):
            for topic in topics:
                await change(listener, topic)
    except Exception as error:
        # Whatever the layer's backend raises: without messages the request still looks once a second.
        logger.warning("a request for a log waits without messages of %s: %r", topics, error)


@asynccontextmanager
async def _disconnect_watch(request: Request, wakeup: Wakeup) -> AsyncIterator[None]:
    """Notifies `wakeup` as soon as the client has left."""

    async def watch() -> None:
        # The first message is the empty body of the request.
        while (await request.receive())["type"] != "http.disconnect":
            pass
        wakeup.disconnect()

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
