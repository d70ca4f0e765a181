"""Subscribes each process once to each topic, and passes the messages on to the sockets of this process.

Measured: 500 subscriptions on the channel layer cost a hundred times what one subscription and a loop do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from live.listeners import Listener
from live.publish import texts_of

PROBE_EVERY_S = 5.0
RETRY_S = 1.0
logger = logging.getLogger(__name__)


class Fanout:
    """The listeners of one event loop by topic: sockets, and the guards that may close them."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._subscribed: set[str] = set()
        self._lock = asyncio.Lock()
        self._channel = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._probe_answered = asyncio.Event()
        self.is_cut_off = False

    @property
    def subscriptions(self) -> frozenset[str]:
        return frozenset(self._subscribed)

    async def join(self, listener: Listener, topic: str) -> None:
        """Once this returns, every message published to `topic` is offered to `listener`."""
        listeners = self._listeners.setdefault(topic, set())
        if listener not in listeners:
            listeners.add(listener)
            _count(topic, 1)
        try:
            await self._subscribe(topic)
        except BaseException:
            # Cancellation counts, too: a browser that leaves while its socket connects would otherwise stay
            # in the table for the life of the process.
            await self.leave(listener, topic)
            raise

    async def leave(self, listener: Listener, topic: str) -> None:
        listeners = self._listeners.get(topic, set())
        if listener in listeners:
            listeners.discard(listener)
            _count(topic, -1)
        if not listeners:
            self._listeners.pop(topic, None)
            await self._unsubscribe(topic)

    async def _subscribe(self, topic: str) -> None:
        async with self._lock:
            if not self._channel:
                self._channel = await get_channel_layer().new_channel()
                self._tasks = [asyncio.create_task(self._pump()), asyncio.create_task(self._probe())]
            if topic not in self._subscribed:
                await get_channel_layer().group_add(topic, self._channel)
                self._subscribed.add(topic)

    async def _unsubscribe(self, topic: str) -> None:
        async with self._lock:
            # Somebody may have joined while we waited for the lock.
            if topic in self._subscribed and topic not in self._listeners:
                self._subscribed.discard(topic)
                await get_channel_layer().group_discard(topic, self._channel)

    async def _pump(self) -> None:
        layer = get_channel_layer()
        while True:
            try:
                message = await layer.receive(self._channel)
            except Exception:
                logger.exception("the channel layer cannot be read; trying again in %s s", RETRY_S)
                await asyncio.sleep(RETRY_S)
                continue
            if message["type"] == "live.probe":
                self._probe_answered.set()
                continue
            for text in texts_of(message):
                self.offer(message["topic"], text)

    def offer(self, topic: str, text: str) -> None:
        for listener in self._listeners.get(topic, ()):
            listener.offer(text)

    async def _probe(self) -> None:
        """Notices that the channel layer was unreachable, and then tells every listener that it may have
        missed messages."""
        # The layer's client reconnects silently, and messages of the time in between are lost without an
        # error.
        layer = get_channel_layer()
        while True:
            await asyncio.sleep(PROBE_EVERY_S)
            self._probe_answered.clear()
            try:
                async with asyncio.timeout(PROBE_EVERY_S):
                    await layer.send(self._channel, {"type": "live.probe"})
                    await self._probe_answered.wait()
            except Exception as error:
                if not self.is_cut_off:
                    logger.warning("the channel layer does not answer, pages are not live: %r", error)
                self.is_cut_off = True
                continue
            if self.is_cut_off:
                self.is_cut_off = False
                logger.info("the channel layer answers again")
                self.miss_all()

    def miss_all(self) -> None:
        for listener in {listener for listeners in self._listeners.values() for listener in listeners}:
            listener.miss()


# By loop and not by process: tests and the development server run several loops in one process, and a
# channel's futures belong to the loop that awaits them.
_fanouts: WeakKeyDictionary[asyncio.AbstractEventLoop, Fanout] = WeakKeyDictionary()
_lock = threading.Lock()
_watching: Counter[str] = Counter()
_on_change: list[Callable[[], None]] = []


def is_watched(topic: str) -> bool:
    """Returns whether a listener of this process has joined the topic. May be called from any thread."""
    # Without the lock: a lookup in a dict is atomic, and an answer that is a moment old does no harm.
    return topic in _watching


def watched_topics() -> list[str]:
    """Returns the topics that listeners of this process have joined."""
    with _lock:
        return list(_watching)


def call_on_change(function: Callable[[], None] | None) -> None:
    """Has `function` called whenever this process begins or ends to watch a topic; None: nothing."""
    _on_change[:] = [] if function is None else [function]


def tell_here(topic: str, text: str) -> None:
    """Offers an encoded message to the listeners of this process, without the channel layer. It serves data
    that a process requests only while it is watched (`is_watched`). May be called from any thread."""
    try:
        here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    with _lock:
        fanouts = list(_fanouts.items())
    for loop, fanout in fanouts:
        if loop is here:
            fanout.offer(topic, text)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(fanout.offer, topic, text)


def _count(topic: str, change: int) -> None:
    with _lock:
        before = _watching[topic]
        _watching[topic] += change
        if not _watching[topic]:
            del _watching[topic]
    if not before or before + change == 0:
        for function in _on_change:
            function()


def fanout() -> Fanout:
    """Returns the fanout of the running event loop, and creates it on the first call."""
    loop = asyncio.get_running_loop()
    with _lock:
        existing = _fanouts.get(loop)
        if existing is None:
            existing = _fanouts[loop] = Fanout()
    return existing
