"""Which web server answers for a node: all servers compute the same from the list of those that live.

Rendezvous hashing: of all servers the one whose hash with the key is greatest. When a server comes or goes,
only its own keys move. Views of two servers may differ for a second or two, and then both may answer for one
node: everything that a node sends may be ingested twice, by two servers at once, with the same result
(docs/adr/0013)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import blake2b

from workspaces import process_caches
from workspaces.servers.server_registry import DEAD_AFTER_S, OtherServer

# A server that could not be reached from here is left out for so long, even if it lives.
AVOIDED_S = 3.0
MAX_CACHED = 50_000


class Ring:
    """This process's view of the living web servers. Read by all threads; each change replaces the whole."""

    def __init__(self) -> None:
        self.own_id = ""
        self._peers: tuple[OtherServer, ...] = ()
        self._avoided: dict[str, float] = {}
        self._owners: dict[str, OtherServer | None] = {}
        self._renewed_at = float("-inf")

    @property
    def others(self) -> tuple[OtherServer, ...]:
        """The other living servers."""
        return tuple(peer for peer in self._peers if peer.id != self.own_id)

    @property
    def is_alone(self) -> bool:
        """Whether no other web server is known."""
        return not any(peer.id != self.own_id for peer in self._peers)

    @property
    def is_current(self) -> bool:
        """Whether the others still count this server as living. One that was stopped for a while must not
        answer for nodes that others have taken over."""
        return self.is_alone or time.monotonic() - self._renewed_at < DEAD_AFTER_S

    def update(self, own_id: str, peers: Sequence[OtherServer], renewed_at: float) -> None:
        """Takes the list of living servers; `renewed_at`: monotonic seconds before this one said that it
        lives."""
        self._renewed_at = renewed_at
        now = time.monotonic()
        avoided = {server: until for server, until in self._avoided.items() if until > now}
        fresh = tuple(sorted(peers, key=lambda peer: peer.id))
        if (own_id, fresh, avoided.keys()) == (self.own_id, self._peers, self._avoided.keys()):
            return
        self.own_id, self._peers, self._avoided, self._owners = own_id, fresh, avoided, {}

    def owner(self, key: str) -> OtherServer | None:
        """Returns the server that answers for this key; None if this one does."""
        owners = self._owners
        try:
            return owners[key]
        except KeyError:
            if len(owners) >= MAX_CACHED:
                owners.clear()
            owners[key] = owner = self._computed_owner(key)
            return owner

    def owns(self, key: str) -> bool:
        return self.owner(key) is None

    def avoid(self, peer: OtherServer) -> None:
        """Leaves a server out that cannot be reached from here, until it may be back: by then its row tells
        whether it lives."""
        self._avoided = {**self._avoided, peer.id: time.monotonic() + AVOIDED_S}
        self._owners = {}

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def _computed_owner(self, key: str) -> OtherServer | None:
        candidates = [peer for peer in self._peers if peer.id not in self._avoided]
        if not candidates:
            return None
        data = key.encode()
        best = max(candidates, key=lambda peer: blake2b(data, digest_size=8, key=peer.id.encode()).digest())
        return None if best.id == self.own_id else best


ring = Ring()
process_caches.register(ring.clear)
