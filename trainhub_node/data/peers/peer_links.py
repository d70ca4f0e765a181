"""The nodes from which a download takes blocks, and what it has learned about them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from trainhub_node.data.peers.blocks import DataBlock
from trainhub_node.data.peers.client import PeerConnection, PeerFailed, PeerNode

# For so long a node that failed is left alone.
REST_S = 3.0
# Nodes beside those that have read a block that are asked for it.
MAX_OTHERS = 4


class PeerLinks:
    """`on_drop` is called with a sentence when a node is not believed any more. `bytes`: name of a node ->
    how much came from it. Each thread has connections of its own."""

    def __init__(self, on_drop: Callable[[str], None]) -> None:
        self.bytes: Counter[str] = Counter()
        self._on_drop = on_drop
        self._lock = threading.Lock()
        self._peers: dict[int, PeerNode] = {}
        self._dropped: set[int] = set()
        self._rests_until: dict[int, float] = {}
        self._own = threading.local()

    def update(self, peers: Iterable[PeerNode]) -> None:
        with self._lock:
            self._peers = {peer.node: peer for peer in peers if peer.node not in self._dropped}

    def candidates(self, holders: Sequence[int]) -> list[PeerNode]:
        """Returns the nodes to ask for a block, first those that have read it."""
        now = time.monotonic()
        with self._lock:
            able = [peer for node, peer in self._peers.items() if self._rests_until.get(node, 0.0) <= now]
        random.shuffle(able)
        readers = [peer for peer in able if peer.node in holders]
        return readers + [peer for peer in able if peer.node not in holders][:MAX_OTHERS]

    def take(self, peer: PeerNode, number: int, block: DataBlock) -> bytearray | None:
        """Returns the bytes of a block, which are to be compared with its hash; None if the node does not
        give it."""
        connections: dict[int, PeerConnection] = self._own.__dict__.setdefault("connections", {})
        used = connections.pop(peer.node, None)
        try:
            if used is not None:
                try:
                    data = used.take(number, block)
                except PeerFailed:
                    # It may have been closed because it was idle, or with the end of its ticket.
                    used.close()
                    used = None
            if used is None:
                used = PeerConnection(peer)
                data = used.take(number, block)
        except PeerFailed:
            if used is not None:
                used.close()
            with self._lock:
                self._rests_until[peer.node] = time.monotonic() + REST_S
            return None
        connections[peer.node] = used
        return data

    @property
    def count(self) -> int:
        return len(self._peers)

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    def add_bytes(self, peer: PeerNode, size: int) -> None:
        with self._lock:
            self.bytes[peer.name] += size

    def drop(self, peer: PeerNode) -> None:
        """The node has sent wrong bytes: nothing more is taken from it."""
        with self._lock:
            if peer.node in self._dropped:
                return
            self._dropped.add(peer.node)
            self._peers.pop(peer.node, None)
        self._on_drop(
            f"Node {peer.name} has sent bytes that are not those of the dataset; nothing more is taken from "
            "it. Have its disk checked."
        )
