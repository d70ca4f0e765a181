"""What travels between two servers: frames of MessagePack, each with a code that only the servers of one hub
can compute. Nothing is encrypted: the way between the servers is one that the operator trusts."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import struct
from hashlib import blake2b, sha256
from typing import Any

import msgpack
from django.conf import settings

NONCE_BYTES = 32
CODE_BYTES = 16
MAX_FRAME_BYTES = 64 * 2**20
_HEAD = struct.Struct(">I")
# What MessagePack carries: numbers, texts, bytes, lists and dicts of these, and None.
Payload = Any
_PROTOCOL = b"trainhub-servers-1"


class LinkRefused(Exception):
    """The other end is no server of this hub, or not the one that was meant."""


class FrameStream:
    """The frames of one connection in both directions. `key`: that of this connection alone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, *, is_client: bool
    ) -> None:
        self._reader, self._writer, self._key = reader, writer, key
        self._out, self._in = (b"c", b"s") if is_client else (b"s", b"c")
        self._sent = self._received = 0

    @property
    def unsent_bytes(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def send(self, frame: list[Payload]) -> None:
        data: bytes = msgpack.packb(frame)
        if len(data) > MAX_FRAME_BYTES:
            raise ValueError(f"a frame has at most {MAX_FRAME_BYTES} bytes, not {len(data)}")
        self._writer.write(b"".join((_HEAD.pack(len(data)), self._code(self._out, self._sent, data), data)))
        self._sent += 1

    async def receive(self) -> list[Payload]:
        """Returns the next frame. Raises LinkRefused for a forged one, IncompleteReadError at the end."""
        head = await self._reader.readexactly(_HEAD.size + CODE_BYTES)
        (size,) = _HEAD.unpack_from(head)
        if size > MAX_FRAME_BYTES:
            raise LinkRefused(f"a frame of {size} bytes")
        data = await self._reader.readexactly(size)
        if not hmac.compare_digest(head[_HEAD.size :], self._code(self._in, self._received, data)):
            raise LinkRefused("a frame that was changed on its way")
        self._received += 1
        return list(msgpack.unpackb(data, strict_map_key=False))

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()

    def _code(self, direction: bytes, number: int, data: bytes) -> bytes:
        return blake2b(
            direction + number.to_bytes(8, "big") + data, digest_size=CODE_BYTES, key=self._key
        ).digest()


async def greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own_id: str, other_id: str
) -> FrameStream:
    """Opens a connection to the server `other_id`. Raises LinkRefused if another program answers there."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    ids = own_id.encode().ljust(32)[:32] + other_id.encode().ljust(32)[:32]
    writer.write(_PROTOCOL + nonce + ids)
    theirs = await reader.readexactly(NONCE_BYTES)
    proof = await reader.readexactly(32)
    talk = nonce + theirs + ids
    if not hmac.compare_digest(proof, _proof(b"server", talk)):
        raise LinkRefused("what listens there is no server of this hub, or has another SECRET_KEY")
    writer.write(_proof(b"client", talk))
    return FrameStream(reader, writer, _proof(b"frames", talk), is_client=True)


async def answer_greeting(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own_id: str
) -> tuple[str, FrameStream]:
    """Answers a connection. Returns the id of the server at its other end. Raises LinkRefused."""
    if await reader.readexactly(len(_PROTOCOL)) != _PROTOCOL:
        raise LinkRefused("the other end speaks another protocol")
    nonce = await reader.readexactly(NONCE_BYTES)
    ids = await reader.readexactly(64)
    other_id, target_id = ids[:32].decode(errors="replace").strip(), ids[32:].decode(errors="replace").strip()
    if target_id != own_id:
        # An address that another process had before.
        raise LinkRefused("the other end looks for another server")
    own = secrets.token_bytes(NONCE_BYTES)
    talk = nonce + own + ids
    writer.write(own + _proof(b"server", talk))
    if not hmac.compare_digest(await reader.readexactly(32), _proof(b"client", talk)):
        raise LinkRefused("the other end does not know this hub's SECRET_KEY")
    return other_id, FrameStream(reader, writer, _proof(b"frames", talk), is_client=False)


def _proof(what: bytes, talk: bytes) -> bytes:
    key = hmac.digest(settings.SECRET_KEY.encode(), _PROTOCOL, sha256)
    return hmac.digest(key, what + talk, sha256)
