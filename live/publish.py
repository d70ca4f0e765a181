"""Publishes messages to the sockets of every process. It never raises into the caller, whose files and rows
are stored already."""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction

from live.messages import Message

# While the channel layer does not answer, each message takes LAYER_TIMEOUT_S. Further ones are dropped rather
# than let the memory of the process grow: pages fetch again once the layer is back.
MAX_WAITING = 10_000
FLUSH_AT_EXIT_S = 2.0
LAYER_TIMEOUT_S = 5.0
# Bytes of logs are messages, too.
MAX_BATCH_CHARACTERS = 256 * 1024
logger = logging.getLogger(__name__)


def publish(topic: str, message: Message) -> None:
    """Queues the message and returns at once. May be called from any thread. Messages of one process keep
    their order."""
    _sender().put(topic, encode(message))


def publish_on_commit(topic: str, message: Message) -> None:
    """Publishes after the present transaction commits, or at once outside of one. Publishes nothing if it is
    rolled back."""
    transaction.on_commit(lambda: publish(topic, message))


def flush(timeout_s: float = FLUSH_AT_EXIT_S) -> bool:
    """Waits until all messages of this process are sent. Returns False if `timeout_s` passes first."""
    return _sender().flush(timeout_s)


def encode(message: Message) -> str:
    """Returns the text that every socket gets. It is encoded once, by the publisher."""
    return json.dumps(message, separators=(",", ":"))


def envelope(topic: str, texts: Sequence[str]) -> dict[str, object]:
    """Returns a batch of messages of one topic in the form in which it crosses the channel layer. A server
    of the version before hears the last of them alone."""
    message: dict[str, object] = {"type": "live.message", "topic": topic, "text": texts[-1]}
    return {**message, "earlier": list(texts[:-1])} if len(texts) > 1 else message


def texts_of(message: Mapping[str, Any]) -> list[str]:
    """Returns the messages of an envelope in their order."""
    return [*message.get("earlier", ()), message["text"]]


async def _send(topic: str, texts: Sequence[str]) -> None:
    try:
        async with asyncio.timeout(LAYER_TIMEOUT_S):
            await get_channel_layer().group_send(topic, envelope(topic, texts))
    except Exception as error:
        # Whatever the layer's backend raises: watchers miss a hint, the work that caused it goes on.
        logger.warning("live messages for %s are lost: %s of them: %r", topic, len(texts), error)


class _Sender:
    """Sends the messages of all threads of a process from one thread with one event loop. Those of one topic
    that wait are sent as one batch: a change of a run is several messages, and each send has its cost."""

    # The layer keeps a connection per event loop. async_to_sync in each calling thread would create a loop,
    # and therefore a connection, for every message.

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._queue: list[tuple[str, str]] = []
        self._has_news = asyncio.Event()
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
            self._queue.append((topic, text))
            if len(self._queue) > 1:
                return
        self._loop.call_soon_threadsafe(self._has_news.set)

    def flush(self, timeout_s: float) -> bool:
        return self._idle.wait(timeout_s)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._drain())

    async def _drain(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            with self._lock:
                queue, self._queue = self._queue, []
            for topic, texts in _batches(queue):
                await _send(topic, texts)
                with self._lock:
                    self._waiting -= len(texts)
                    if not self._waiting:
                        self._idle.set()


def _batches(queue: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yields the messages in batches of one topic, in their order. A batch ends with the message that
    brings it beyond MAX_BATCH_CHARACTERS."""
    by_topic: dict[str, list[str]] = {}
    sizes = Counter[str]()
    for topic, text in queue:
        by_topic.setdefault(topic, []).append(text)
        sizes[topic] += len(text)
        if sizes[topic] > MAX_BATCH_CHARACTERS:
            yield topic, by_topic.pop(topic)
            del sizes[topic]
    yield from by_topic.items()


_senders: dict[int, _Sender] = {}
_senders_lock = threading.Lock()


def _sender() -> _Sender:
    """Returns the sender of this process."""
    # By process id: a forked child inherits the table but not the thread, and needs a sender of its own.
    with _senders_lock:
        sender = _senders.get(os.getpid())
        if sender is None:
            sender = _senders[os.getpid()] = _Sender()
            atexit.register(sender.flush, FLUSH_AT_EXIT_S)
        return sender
