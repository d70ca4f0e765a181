"""The link between two servers: real sockets in one event loop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.hub import free_port
from workspaces.servers.link_frames import MAX_FRAME_BYTES, FrameStream, LinkRefused, greet
from workspaces.servers.link_listener import LinkListener
from workspaces.servers.links import LinkBroken, Links
from workspaces.servers.server_registry import OtherServer


class Other:
    """Another server: what it was told, and how it answers."""

    def __init__(self) -> None:
        self.peer = OtherServer(secrets.token_hex(16), "other", f"127.0.0.1:{free_port()}")
        self.notices: list[tuple[str, Any]] = []
        self.ended: list[str] = []
        self.is_silent = asyncio.Event()

    async def _echo(self, payload: Any) -> Any:
        if payload == "wait":
            await self.is_silent.wait()
        return [payload]

    async def _fail(self, payload: Any) -> Any:
        raise ValueError(payload)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        listener = LinkListener(
            self.peer.id,
            {"echo": self._echo, "fail": self._fail},
            {"note": lambda server, payload: self.notices.append((server, payload))},
            self.ended.append,
        )
        host, _, port = self.peer.address.rpartition(":")
        async with listener.listening(host, int(port)):
            yield


async def test_requests_are_answered_in_any_order() -> None:
    other, links = Other(), Links()
    async with other.listening():
        link = await links.to(other.peer)
        late = asyncio.create_task(link.request("echo", "wait"))
        assert await link.request("echo", {"bytes": b"\0" * 1_000_000}) == [{"bytes": b"\0" * 1_000_000}]
        other.is_silent.set()
        assert await late == ["wait"]
        assert await links.to(other.peer) is link
        links.close()


async def test_a_request_that_fails_there_has_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    other, links = Other(), Links()
    async with other.listening():
        assert await (await links.to(other.peer)).request("fail", "why") is None
        links.close()
    assert "A request of another server failed" in caplog.text


async def test_notices_arrive_and_the_end_is_noticed() -> None:
    other, links = Other(), Links()
    async with other.listening():
        (await links.to(other.peer)).notify("note", ["node.1"])
        async with asyncio.timeout(5):
            while not other.notices:
                await asyncio.sleep(0.01)
            links.close()
            while not other.ended:
                await asyncio.sleep(0.01)
    assert [payload for _, payload in other.notices] == [["node.1"]]


async def test_what_waits_for_a_server_that_goes_is_told_at_once() -> None:
    other, links = Other(), Links()
    async with other.listening():
        link = await links.to(other.peer)
        waiting = asyncio.create_task(link.request("echo", "wait"))
        await asyncio.sleep(0.05)
        links.drop_all_but(())
        with pytest.raises(LinkBroken):
            await waiting
        assert links.existing(other.peer.id) is None


async def test_where_nobody_listens_or_somebody_else_there_is_no_link() -> None:
    other, links = Other(), Links()
    with pytest.raises(LinkBroken):
        await links.to(other.peer)
    async with other.listening():
        earlier = OtherServer(secrets.token_hex(16), "earlier", other.peer.address)
        with pytest.raises(LinkBroken):
            await links.to(earlier)
        links.close()


async def test_another_secret_key_opens_nothing(settings: Any) -> None:
    other = Other()
    async with other.listening():
        host, _, port = other.peer.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        greeting = asyncio.create_task(greet(reader, writer, "0" * 32, other.peer.id))
        # The other end has read the key of the settings by the time that this end compares.
        await asyncio.sleep(0.1)
        stranger = await asyncio.open_connection(host, int(port))
        stranger[1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 200)
        assert await stranger[0].read() == b""
        (await greeting).close()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"trainhub-servers-1" + b"n" * 32 + b"0" * 32 + other.peer.id.encode())
        assert len(await reader.readexactly(64)) == 64
        writer.write(b"p" * 32 + b"frame")
        assert await reader.read() == b""
        stranger[1].close()
        writer.close()


async def test_a_frame_that_was_changed_on_its_way_ends_the_link() -> None:
    reader = asyncio.StreamReader()
    sent: list[bytes] = []

    class Wire:
        transport = None

        def write(self, data: bytes) -> None:
            sent.append(data)

    out = FrameStream(reader, Wire(), b"key", is_client=True)  # type: ignore[arg-type]
    out.send([0, 1, "echo", b"payload"])
    out.send([0, 2, "echo", b"payload"])
    for data in (sent[0].replace(b"payload", b"paylord"), sent[1]):
        changed = asyncio.StreamReader()
        changed.feed_data(data)
        with pytest.raises(LinkRefused):  # the second one alone: a frame was left out before it
            await FrameStream(changed, Wire(), b"key", is_client=False).receive()  # type: ignore[arg-type]
    whole = asyncio.StreamReader()
    whole.feed_data(b"".join(sent))
    stream = FrameStream(whole, Wire(), b"key", is_client=False)  # type: ignore[arg-type]
    assert [await stream.receive(), await stream.receive()][1][1] == 2
    with pytest.raises(ValueError, match="at most"):
        out.send([0, 3, "echo", b"x" * (MAX_FRAME_BYTES + 1)])
