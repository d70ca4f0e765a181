"""Takes blocks from another node."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from trainhub_node.data.peers.blocks import DataBlock
from trainhub_node.data.peers.wire import ABSENT, ANSWER, OK, REQUEST, receive

CONNECT_S = 3.0
# Without a byte.
SILENT_S = 5.0
# For a whole block.
BLOCK_S = 60.0


class PeerFailed(Exception):
    """The other node is away, too slow, or refuses."""


class PeerNode(NamedTuple):
    """`fingerprint`: the SHA-256 of the certificate that the hub has given the node, in hexadecimal
    digits."""

    node: int
    name: str
    address: str
    port: int
    fingerprint: str
    ticket: bytes

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PeerNode:
        """Raises the errors of wrong data: KeyError, TypeError and ValueError."""
        return cls(
            int(data["node"]),
            str(data["name"]),
            str(data["address"]),
            int(data["port"]),
            str(data["fingerprint"]),
            base64.b64decode(data["ticket"]),
        )


class PeerConnection:
    """A connection to a node, checked against the certificate that the hub names. Raises PeerFailed."""

    def __init__(self, peer: PeerNode) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # The certificate is compared as a whole instead.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            connection = socket.create_connection((peer.address, peer.port), CONNECT_S)
            try:
                self._socket = context.wrap_socket(connection)
            except BaseException:
                connection.close()
                raise
            self._greet(peer)
        except (OSError, EOFError) as error:
            raise PeerFailed(str(error) or type(error).__name__) from error

    def _greet(self, peer: PeerNode) -> None:
        certificate = self._socket.getpeercert(binary_form=True) or b""
        if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), peer.fingerprint):
            self._socket.close()
            raise PeerFailed("it is not the node that the hub names")
        self._socket.sendall(peer.ticket)

    def take(self, number: int, block: DataBlock) -> bytearray | None:
        """Returns the bytes of a block, which may be wrong; None if the node does not have it."""
        began_at = time.monotonic()
        try:
            self._socket.settimeout(SILENT_S)
            self._socket.sendall(REQUEST.pack(number))
            status, length = ANSWER.unpack(receive(self._socket, ANSWER.size, began_at + SILENT_S))
            if status == ABSENT:
                return None
            if status != OK or length != block.length:
                raise PeerFailed("it refuses" if status != OK else "it sends another number of bytes")
            return self._receive(length, began_at + BLOCK_S)
        except (OSError, EOFError) as error:
            raise PeerFailed(str(error) or type(error).__name__) from error

    def _receive(self, length: int, deadline: float) -> bytearray:
        data = bytearray(length)
        view, here = memoryview(data), 0
        self._socket.settimeout(SILENT_S)
        while here < length:
            count = self._socket.recv_into(view[here:])
            if not count:
                raise EOFError("it ended in the middle of a block")
            here += count
            if time.monotonic() > deadline:
                raise TimeoutError("it is too slow")
        return data

    def close(self) -> None:
        self._socket.close()
