"""How many connections the web server keeps, and which it gives up first when there are too many.

Only connections that have not sent a complete request head count against their address. Whoever has sent one
is a client of the hub, so hundreds of nodes or people may share one address."""

from __future__ import annotations

import ipaddress
import resource
from dataclasses import dataclass
from typing import Protocol

MAX_OPEN = 16_384
MAX_UNFINISHED = 2_048
MAX_UNFINISHED_PER_ADDRESS = 512
"""Twice as many as the nodes of a large cluster, all of which may connect at the same moment."""
LEAST_RESERVED = 256
"""File descriptors that stay free for the hub's own files: database, logs, blobs, Valkey."""
IPV6_NETWORK_BYTES = 8
"""One machine usually has a whole /64."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    handshake: float = 15
    head: float = 15
    """From the first byte of a head, or from the connection's start, to the end of the head."""
    body: float = 30
    """How often the rate of an incomplete body is checked."""
    stalled: float = 120
    """How long a client may leave the beginning of an answer unread."""


class Connection(Protocol):
    """What can be given up."""

    def abort(self) -> None: ...


class ConnectionLimits:
    """Counts open connections. At a limit it aborts the connection that has gone without a complete head for
    longest."""

    def __init__(self, max_open: int, timeouts: Timeouts | None = None) -> None:
        self.max_open = max_open
        self.timeouts = timeouts or Timeouts()
        self.max_unfinished = min(MAX_UNFINISHED, max_open // 2)
        self.max_per_address = min(MAX_UNFINISHED_PER_ADDRESS, self.max_unfinished)
        self._open: set[Connection] = set()
        # Dictionaries keep their order, so the first key is the oldest.
        self._unfinished: dict[Connection, str] = {}
        self._by_address: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection) -> None:
        """Call once for each accepted connection. Makes room by aborting an unfinished one; without any, the
        new one goes."""
        if len(self._open) >= self.max_open:
            victim = next(iter(self._unfinished), connection)
            self.closed(victim)
            victim.abort()
            if victim is connection:
                return
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        """May be called more than once."""
        self.finished(connection)
        self._open.discard(connection)

    def waiting(self, connection: Connection, address: str) -> None:
        """The connection has sent no complete head. An empty `address`, a trusted proxy's, counts towards the
        total only."""
        if connection in self._unfinished or connection not in self._open:
            return
        self._unfinished[connection] = address
        own = self._by_address.setdefault(address, {})
        own[connection] = None
        if address and len(own) > self.max_per_address:
            self._abort(next(iter(own)))
        elif len(self._unfinished) > self.max_unfinished:
            self._abort(next(iter(self._unfinished)))

    def finished(self, connection: Connection) -> None:
        """The head is complete, or the connection has gone."""
        address = self._unfinished.pop(connection, None)
        if address is None:
            return
        own = self._by_address[address]
        del own[connection]
        if not own:
            del self._by_address[address]

    def _abort(self, connection: Connection) -> None:
        self.closed(connection)
        connection.abort()


def max_open_connections() -> int:
    """As many as the limit on open files allows, less a reserve for the hub's own files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_OPEN
    return max(16, min(MAX_OPEN, soft - max(LEAST_RESERVED, soft // 8)))


def raise_file_limit() -> None:
    """Raise the soft limit on open files to the hard limit: the usual 1,024 are fewer than a busy hub has
    connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def address_key(host: str) -> str:
    """The address that a connection counts against: all of IPv4, the network of IPv6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else address.packed[:IPV6_NETWORK_BYTES].hex()
