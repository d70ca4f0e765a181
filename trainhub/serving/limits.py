"""Limits the connections of the web server, and chooses which one is closed when there are too many.

Only connections that have not sent a complete request head count against their address. A client that has
sent one is a client of the hub, so hundreds of nodes or people may share one address."""

from __future__ import annotations

import ipaddress
import resource
from dataclasses import dataclass
from typing import Protocol

MAX_OPEN = 16_384
MAX_UNFINISHED = 2_048
# Twice as many as the nodes of a large cluster, all of which may connect at the same moment.
MAX_UNFINISHED_PER_ADDRESS = 512
# File descriptors that stay free for the hub's own files: database, logs, blobs, Valkey.
MIN_RESERVED = 256
# One machine usually has a whole /64.
IPV6_NETWORK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits of connections, in seconds."""

    handshake: float = 15
    head: float = 15
    """From the first byte of a head, or from the connection's start, to the end of the head."""
    body: float = 30
    """How often the rate of an incomplete body is checked."""
    stalled: float = 120
    """How long a client may leave the beginning of an answer unread."""


class Connection(Protocol):
    """A connection that can be aborted."""

    def abort(self) -> None: ...


class ConnectionLimits:
    """Counts open connections. At a limit it aborts the connection that has been without a complete head for
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
        """Counts an accepted connection; to be called once. At the limit an unfinished connection is aborted
        to make room; if there is none, the new one is aborted."""
        if len(self._open) >= self.max_open:
            # Without an unfinished connection all open ones belong to clients of the hub, which have
            # precedence over a new one.
            victim = next(iter(self._unfinished), connection)
            self.closed(victim)
            victim.abort()
            if victim is connection:
                return
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        """Ends the count of a connection. May be called more than once."""
        self.finished(connection)
        self._open.discard(connection)

    def waiting(self, connection: Connection, address: str) -> None:
        """Counts the connection as unfinished: it has sent no complete head. An empty `address`, used for
        trusted proxies, counts towards the total only."""
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
        """Ends the count as unfinished: the head is complete, or the connection has gone."""
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
    """Returns how many connections the limit on open files permits, less a reserve for the hub's own
    files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_OPEN
    return max(16, min(MAX_OPEN, soft - max(MIN_RESERVED, soft // 8)))


def raise_file_limit() -> None:
    """Raises the soft limit on open files to the hard limit: the usual 1,024 are fewer than the connections
    of a busy hub."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def address_key(host: str) -> str:
    """Returns the key under which a connection is counted: the whole IPv4 address, or the /64 network of an
    IPv6 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else address.packed[:IPV6_NETWORK_BYTES].hex()
