"""The process that gives other nodes blocks of this node's cache, over TLS.

It has the agent's account and reads the cache only. The agent starts it with a socket that listens, and with
the certificate and the key of tickets that the hub gave, and ends with it."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import NoReturn

from trainhub_launch.data.peer_tickets import TICKET_BYTES, PeerTicket, open_ticket
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.cached_blocks import NotHere, has_files, read_block
from trainhub_node.data.peers.swarm_table import SwarmTable
from trainhub_node.data.peers.wire import ABSENT, ANSWER, OK, REFUSED, REQUEST, receive
from trainhub_node.environments.builder_account import end_with_parent

MAX_CONNECTIONS = 64
# From one address: a node has 4 for each of its downloads.
MAX_PER_ADDRESS = 16
# Until the ticket has arrived, and between requests.
GREETING_S, IDLE_S = 10.0, 60.0
# For a whole block: whoever takes it more slowly than 70 kB/s does better without.
BLOCK_S = 120.0
# Of a read or write while a block is sent.
SEND_S = 20.0


class BlockServer:
    """`listener`: the socket; `context`: with the certificate; `key`: that of tickets."""

    def __init__(
        self, listener: socket.socket, context: ssl.SSLContext, cache: DataCache, key: bytes
    ) -> None:
        self._listener = listener
        self._context = context
        self._cache = cache
        self._key = key
        self._lock = threading.Lock()
        self._connections: Counter[str] = Counter()

    def serve(self) -> NoReturn:
        while True:
            connection, address = self._listener.accept()
            host = str(address[0])
            if not self._admit(host):
                connection.close()
                continue
            threading.Thread(target=self._handle, args=(connection, host), daemon=True).start()

    def _admit(self, host: str) -> bool:
        with self._lock:
            if self._connections.total() >= MAX_CONNECTIONS or self._connections[host] >= MAX_PER_ADDRESS:
                return False
            self._connections[host] += 1
            return True

    def _handle(self, connection: socket.socket, host: str) -> None:
        # A stranger may send its greeting byte by byte: each would come in time.
        greeting = threading.Timer(GREETING_S, _shut, [connection])
        greeting.daemon = True
        greeting.start()
        try:
            connection.settimeout(GREETING_S)
            with self._context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=False
            ) as secured:
                secured.do_handshake()
                sent = receive(secured, TICKET_BYTES, time.monotonic() + GREETING_S)
                greeting.cancel()
                self._answer_all(secured, open_ticket(sent, self._key, time.time()))
        except (OSError, EOFError):
            # The other side is gone, too slow, or speaks something else: it asks again, or another node.
            pass
        finally:
            greeting.cancel()
            connection.close()
            with self._lock:
                self._connections[host] -= 1
                if not self._connections[host]:
                    del self._connections[host]

    def _answer_all(self, connection: ssl.SSLSocket, ticket: PeerTicket | None) -> None:
        table = self._table(ticket) if ticket else None
        while True:
            (number,) = REQUEST.unpack(receive(connection, REQUEST.size, time.monotonic() + IDLE_S))
            if ticket is None or ticket.expires_at <= time.time():
                connection.sendall(ANSWER.pack(REFUSED, 0))
                return
            if table is None:
                table = self._table(ticket)
            self._send_block(connection, table, number)

    def _table(self, ticket: PeerTicket) -> SwarmTable | None:
        try:
            return SwarmTable(self._cache, ticket.swarm)
        except FileNotFoundError:
            return None

    def _send_block(self, connection: ssl.SSLSocket, table: SwarmTable | None, number: int) -> None:
        block = table.block(number) if table else None
        if table is None or block is None or (block.files > 1 and not has_files(self._cache, table, block)):
            connection.sendall(ANSWER.pack(ABSENT, 0))
            return
        deadline = time.monotonic() + BLOCK_S
        connection.settimeout(SEND_S)
        is_announced = False
        try:
            for chunk in read_block(self._cache, table, block):
                if not is_announced:
                    connection.sendall(ANSWER.pack(OK, block.length))
                    is_announced = True
                connection.sendall(chunk)
                if time.monotonic() > deadline:
                    raise TimeoutError
        except NotHere:
            if is_announced:
                # A file was removed meanwhile. The rest cannot come: the end of the connection says so.
                raise EOFError from None
            connection.sendall(ANSWER.pack(ABSENT, 0))
            return
        if not is_announced:
            connection.sendall(ANSWER.pack(OK, 0))


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Returns what speaks TLS with this certificate and key, both as PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The library reads files only; the key is on no disk.
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, f"{certificate}\n{key}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context


def run(folder: str) -> NoReturn:
    """Serves the cache in `folder` with what stands in standard input."""
    end_with_parent()
    terms = json.load(sys.stdin)
    listener = socket.socket(fileno=terms["socket"])
    context = server_context(terms["certificate"], terms["key"])
    BlockServer(listener, context, DataCache(folder, ""), bytes.fromhex(terms["ticket_key"])).serve()
