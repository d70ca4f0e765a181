"""Carries one connection through the gateway: TLS handshake, sign-in, then bytes in both directions until
either side ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from pathlib import Path

from trainhub.gateway import commands
from trainhub.gateway.admission import Admission

log = logging.getLogger(__name__)
# Time for handshake and sign-in together, of which an honest client takes milliseconds.
SIGN_IN_S = 10.0
PIECE_BYTES = 16384
USERS = "node."
REFUSED = b"-NOAUTH Authentication required.\r\n"


class SignInRefused(Exception):
    """The client did not sign in as a node."""


class Relay:
    """Carries connections of clients to the server at the Unix socket `server`."""

    def __init__(self, server: Path, tls: ssl.SSLContext, admission: Admission) -> None:
        self._server = server
        self._tls = tls
        self._admission = admission

    async def carry(self, client: socket.socket, address: str) -> None:
        """Carries a connection until it ends. Never raises for errors of the client or the server."""
        if not self._admission.accept(address):
            client.close()
            return
        with contextlib.ExitStack() as stranger, contextlib.suppress(OSError, TimeoutError, SignInRefused):
            stranger.callback(self._admission.release, address)
            async with contextlib.AsyncExitStack() as connections:
                async with asyncio.timeout(SIGN_IN_S):
                    to_client = await self._handshake(client, connections)
                    to_server = await self._connect(connections)
                    user = await _sign_in(to_client, to_server)
                # Signed in: from here on the connection counts for its user, not for its address.
                stranger.pop_all().close()
                await self._serve(user, to_client, to_server)

    async def _handshake(self, client: socket.socket, connections: contextlib.AsyncExitStack) -> Peer:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(PIECE_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, client, ssl=self._tls, ssl_shutdown_timeout=1.0
            )
        except BaseException:
            client.close()
            raise
        return _managed(Peer(reader, asyncio.StreamWriter(transport, protocol, reader, loop)), connections)

    async def _connect(self, connections: contextlib.AsyncExitStack) -> Peer:
        return _managed(
            Peer(*await asyncio.open_unix_connection(self._server, limit=PIECE_BYTES)), connections
        )

    async def _serve(self, user: str, client: Peer, server: Peer) -> None:
        if not self._admission.admit(user, client, client.abort):
            log.warning("A connection of %s is refused: there is no room for more connections", user)
            return
        try:
            copies = {
                asyncio.ensure_future(client.copy_to(server)),
                asyncio.ensure_future(server.copy_to(client)),
            }
            _, rest = await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            # The other direction would wait for ever for a peer whose counterpart has gone.
            for copy in rest:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        finally:
            self._admission.leave(user, client)


class Peer:
    """One side of a connection: its reader and its writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def copy_to(self, other: Peer) -> None:
        while data := await self.reader.read(PIECE_BYTES):
            await other.write(data)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        # Waits while the other side does not read, so that nothing piles up in memory.
        await self._writer.drain()

    def abort(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


async def _sign_in(client: Peer, server: Peer) -> str:
    """Passes the client's first command to the server, and the answer back. Returns the user that has signed
    in. Raises SignInRefused."""
    head = b""
    try:
        while (command := commands.parse_command(head)) is None:
            piece = await client.reader.read(PIECE_BYTES)
            if not piece:
                raise SignInRefused
            head += piece
        user = commands.user_of(command)
    except commands.BadCommand as error:
        await client.write(REFUSED)
        raise SignInRefused from error
    if not user.startswith(USERS):
        # The hub's own users do not come this way, so their passwords are refused here even if somebody knows
        # them.
        await client.write(REFUSED)
        raise SignInRefused
    # Whatever the client sent behind its sign-in passes, too: from here on Valkey's access rules for the user
    # apply.
    await server.write(head)
    answer = await server.reader.read(PIECE_BYTES)
    await client.write(answer)
    if not answer or answer.startswith(b"-"):
        raise SignInRefused
    return user


def _managed(line: Peer, connections: contextlib.AsyncExitStack) -> Peer:
    connections.callback(line.close)
    return line
