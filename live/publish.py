"""Telling the sockets of every process. Never raises into the caller: the files and rows are already
right."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import threading
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction

from live.messages import Message

MAX_WAITING = 10_000
FLUSH_AT_EXIT_S = 2.0
LAYER_TIMEOUT_S = 5.0
logger = logging.getLogger(__name__)


def publish(topic: str, message: Message) -> None:
    """From any thread; returns at once. Messages of one process keep their order."""
    _sender().put(topic, encode(message))


def publish_on_commit(topic: str, message: Message) -> None:
    """After the present transaction commits; now, outside of one. Nothing if it is rolled back."""
    transaction.on_commit(lambda: publish(topic, message))


def flush(timeout_s: float = FLUSH_AT_EXIT_S) -> bool:
    """Wait until what this process published has left it."""
    return _sender().flush(timeout_s)


def encode(message: Message) -> str:
    """The text every socket gets: encoded once, by whoever publishes."""
    return json.dumps(message, separators=(",", ":"))


def envelope(topic: str, text: str) -> dict[str, Any]:
    """A message as it travels on the channel layer."""
    return {"type": "live.message", "topic": topic, "text": text}


async def _send(topic: str, text: str) -> None:
    try:
        async with asyncio.timeout(LAYER_TIMEOUT_S):
            await get_channel_layer().group_send(topic, envelope(topic, text))
    except Exception as error:
        # Whatever the layer's backend raises: watchers miss a hint, the work that caused it goes on.
        logger.warning("a live message for %s is lost: %r", topic, error)


class _Sender:
    """One thread with one event loop, hence one connection, for all other threads of the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._queue: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._idle = threading.Event()
        self._idle.set()
        self._waiting = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="live-publish", daemon=True).start()

    def put(self, topic: str, text: str) -> None:
        with self._lock:
            if self._waiting >= MAX_WAITING:
                logger.warning("a live message for %s is lost: %s are waiting already", topic, MAX_WAITING)
                return
            self._waiting += 1
            self._idle.clear()
        self._loop.call_soon_threadsafe(self._queue.put_nowait, (topic, text))

    def flush(self, timeout_s: float) -> bool:
        return self._idle.wait(timeout_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._drain())

    async def _drain(self) -> None:
        while True:
            topic, text = await self._queue.get()
            await _send(topic, text)
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._idle.set()


_senders: dict[int, _Sender] = {}
_senders_lock = threading.Lock()


def _sender() -> _Sender:
    """The process's sender, by process id: a forked child needs its own, because threads do not survive a
    fork."""
    with _senders_lock:
        found = _senders.get(os.getpid())
        if found is None:
            found = _senders[os.getpid()] = _Sender()
            atexit.register(found.flush, FLUSH_AT_EXIT_S)
        return found
