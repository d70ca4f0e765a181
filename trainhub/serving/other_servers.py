"""Joins this web server to the others of the same hub, for as long as it serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from django.conf import settings

from live import elsewhere, fanout
from trainhub.serving.link_address import link_bind
from workspaces.http.threads import in_thread
from workspaces.servers import membership
from workspaces.servers.forwarding import CALL, answer_forwarded
from workspaces.servers.link_frames import Payload
from workspaces.servers.link_listener import LinkListener
from workspaces.servers.links import LinkBroken, links
from workspaces.servers.ring import ring
from workspaces.servers.server_registry import WEB, OtherServer, OwnProcess

WATCHING, TELL = "watching", "tell"


@asynccontextmanager
async def joined() -> AsyncIterator[None]:
    """Registers this server and links it to the others for the time of the block. Raises OSError if it cannot
    listen at SERVER_ADDRESS."""
    own = OwnProcess(WEB, settings.SERVER_ADDRESS, is_alone=not settings.SERVER_ADDRESS)
    loop = asyncio.get_running_loop()
    watches = SharedWatches(loop)
    listener = LinkListener(
        own.id, {CALL: answer_forwarded}, {WATCHING: _set_watched, TELL: _tell}, _forget_watches
    )

    def meet() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(watches.meet)

    async with AsyncExitStack() as stack:
        bind = link_bind()
        if bind is not None:
            await stack.enter_async_context(listener.listening(bind.host, bind.port))
        thread = await in_thread(membership.join_servers, own, meet)
        watches.start()
        try:
            yield
        finally:
            watches.stop()
            await in_thread(membership.leave_servers, thread)
            links.close()
            ring.clear()


class SharedWatches:
    """Tells the other servers which nodes the sockets of this one watch. Runs in the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_due = False
        self._sent: dict[str, list[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        fanout.call_on_change(self._changed)
        elsewhere.relay_with(self._relay)

    def stop(self) -> None:
        fanout.call_on_change(None)
        elsewhere.relay_with(None)
        for task in self._tasks:
            task.cancel()

    def meet(self) -> None:
        """Called about once a second: keeps a link to each living server, and tells each what is watched
        here."""
        others = ring.others
        links.drop_all_but(peer.id for peer in others)
        self._sent = {peer.id: self._sent[peer.id] for peer in others if peer.id in self._sent}
        topics = sorted(elsewhere.shared_topics())
        for peer in others:
            if links.existing(peer.id) is None or self._sent.get(peer.id) != topics:
                self._sent[peer.id] = topics
                task = self._loop.create_task(self._send(peer, topics))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _changed(self) -> None:
        # Once for all changes of this turn of the loop.
        if not self._is_due and ring.others:
            self._is_due = True
            self._loop.call_soon_threadsafe(self._meet_now)

    def _meet_now(self) -> None:
        self._is_due = False
        self.meet()

    async def _send(self, peer: OtherServer, topics: list[str]) -> None:
        try:
            (await links.to(peer)).notify(WATCHING, topics)
        except LinkBroken:
            self._sent.pop(peer.id, None)

    def _relay(self, server: str, topic: str, text: str) -> None:
        self._loop.call_soon_threadsafe(_notify, server, topic, text)


def _notify(server: str, topic: str, text: str) -> None:
    link = links.existing(server)
    # Without one this sample is lost; the next round opens it again.
    if link is not None:
        link.notify(TELL, [topic, text])


def _set_watched(server: str, topics: Payload) -> None:
    elsewhere.set_watched_by(server, topics)


def _forget_watches(server: str) -> None:
    elsewhere.set_watched_by(server, ())


def _tell(_server: str, payload: Payload) -> None:
    topic, text = payload
    fanout.tell_here(topic, text)
