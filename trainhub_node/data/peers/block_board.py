"""What a download knows about the blocks of its swarm: which are here, which it reads, and who has the
others."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from trainhub_node.data.peers.blocks import DataBlock, Segment, block_hash, segments
from trainhub_node.data.peers.hub_exchange import SwarmNews

# After which what could not be done now is tried again.
DELAY_S = 0.5
# Rounds through all nodes that may have a block, before it counts as lost.
MAX_ROUNDS = 3


class _Reading(NamedTuple):
    """A block that is read from the store: its segments, and the hashes of those that are here."""

    segments: list[Segment]
    digests: dict[int, bytes]


class PeerBlock(NamedTuple):
    """A block that another node should have. `holders`: nodes that have read it."""

    number: int
    digest: bytes
    holders: tuple[int, ...]


class BlockBoard:
    """Methods may be called from any thread. `changed` is notified when there is something to do."""

    def __init__(self, blocks: Sequence[DataBlock], sizes: Sequence[int]) -> None:
        self.changed = threading.Condition()
        self.blocks_read = 0
        self._blocks = blocks
        self._sizes = sizes
        self._done: set[int] = set()
        self._reading: dict[int, _Reading] = {}
        self._segments: deque[tuple[int, Segment]] = deque()
        self._hashes: dict[int, bytes] = {}
        self._disputed: set[int] = set()
        self._holders: dict[int, tuple[int, ...]] = {}
        self._takeable: list[int] = []
        self._taking: set[int] = set()
        self._rounds: dict[int, int] = {}
        self._needs: set[int] = set()
        self._published: deque[tuple[int, bytes]] = deque()
        self._delayed: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = count()
        self._all: Iterator[int] | None = None

    def begin(self, done: Iterable[int]) -> None:
        """`done`: the blocks that are here from the start."""
        self._done.update(done)

    @property
    def outstanding(self) -> int:
        """How many blocks are being read from the store."""
        return len(self._reading)

    def read_alone(self) -> None:
        """From now on everything that is missing is read from the store."""
        with self.changed:
            self._all = self._all or iter(range(len(self._blocks)))

    def give_up_reading(self) -> None:
        """Nothing comes from the store: other nodes may read what this one should have read."""
        with self.changed:
            self._segments.clear()
            self._needs.update(self._reading)
            self._reading.clear()

    def add_news(self, news: SwarmNews) -> None:
        with self.changed:
            for node, number, digest in news.hashes:
                self._add_hash(node, number, digest)
            for number in news.read:
                self._start_reading(number)
            self.changed.notify_all()

    def pump(self) -> None:
        """Puts back what was put off, and finds work where this node works alone."""
        with self.changed:
            while self._delayed and self._delayed[0][0] <= time.monotonic():
                heapq.heappop(self._delayed)[2]()
            while self._all is not None and len(self._segments) < 64:
                number = next(self._all, None)
                if number is None:
                    break
                if number not in self._taking:
                    self._start_reading(number, again=False)
            self.changed.notify_all()

    def next_segment(self, stopping: threading.Event) -> tuple[int, Segment] | None:
        """Waits for a segment that is to be read from the store. Returns its block and it; None at the
        end."""
        with self.changed:
            while not self._segments:
                if stopping.is_set():
                    return None
                self.changed.wait()
            return None if stopping.is_set() else self._segments.popleft()

    def finish_segment(self, number: int, segment: Segment, digest: bytes) -> None:
        """Notes that a segment is here, with its SHA-256."""
        with self.changed:
            reading = self._reading.get(number)
            if reading is None:
                return
            reading.digests[segment.file] = digest
            if len(reading.digests) < len(reading.segments):
                return
            del self._reading[number]
            self.blocks_read += 1
            self._done.add(number)
            whole = block_hash(reading.digests[part.file] for part in reading.segments)
            self._published.append((number, whole))
            self.changed.notify_all()

    def abandon(self, number: int) -> None:
        """What was here has gone: its hash cannot be published."""
        with self.changed:
            self._reading.pop(number, None)
            self.changed.notify_all()

    def delay_segment(self, number: int, segment: Segment) -> None:
        """Another process has the file now: puts the segment off."""
        with self.changed:
            self._delay(lambda: self._segments.append((number, segment)))

    def next_take(self, stopping: threading.Event) -> PeerBlock | None:
        """Waits for a block that another node has. Returns None at the end."""
        with self.changed:
            while not stopping.is_set():
                while self._takeable:
                    number = heapq.heappop(self._takeable)
                    if self._is_takeable(number):
                        self._taking.add(number)
                        return PeerBlock(number, self._hashes[number], self._holders[number])
                self.changed.wait()
            return None

    def finish_take(self, number: int) -> None:
        """Notes that the block is here."""
        with self.changed:
            self._taking.discard(number)
            self._rounds.pop(number, None)
            self._done.add(number)
            self.changed.notify_all()

    def fail_take(self, number: int, *, is_peers_fault: bool) -> None:
        """Notes that no node has given the block now."""
        with self.changed:
            self._taking.discard(number)
            self._rounds[number] = self._rounds.get(number, 0) + is_peers_fault
            if self._all is not None:
                self._start_reading(number)
            elif self._rounds[number] >= MAX_ROUNDS:
                self._needs.add(number)
            else:
                self._delay(lambda: heapq.heappush(self._takeable, number))

    @property
    def has_published(self) -> bool:
        """Whether there are hashes that the hub does not know yet."""
        return bool(self._published)

    def take_published(self, limit: int) -> list[tuple[int, bytes]]:
        """Returns number and hash of blocks that were read and are not published yet."""
        with self.changed:
            return [self._published.popleft() for _ in range(min(limit, len(self._published)))]

    def restore_published(self, hashes: Sequence[tuple[int, bytes]]) -> None:
        """They could not be published."""
        with self.changed:
            self._published.extendleft(reversed(hashes))

    def needs(self, limit: int) -> list[int]:
        """Returns blocks that no node gives."""
        with self.changed:
            self._needs -= self._done
            return list(islice(self._needs, limit))

    def _add_hash(self, node: int, number: int, digest: bytes) -> None:
        if number in self._disputed:
            return
        if self._hashes.setdefault(number, digest) != digest:
            # Nodes have read different bytes: only the store can be believed.
            self._disputed.add(number)
            del self._hashes[number]
            self._start_reading(number, again=False)
            return
        self._holders[number] = tuple({*self._holders.get(number, ()), node})
        # It was read again if no node had it.
        self._needs.discard(number)
        self._rounds.pop(number, None)
        if self._is_takeable(number):
            heapq.heappush(self._takeable, number)

    def _is_takeable(self, number: int) -> bool:
        return not (
            number in self._done
            or number in self._reading
            or number in self._taking
            or number not in self._hashes
        )

    def _start_reading(self, number: int, *, again: bool = True) -> None:
        """`again`: also if the block is here: the others learn its hash then."""
        if number in self._reading or (number in self._done and not again):
            return
        self._needs.discard(number)
        parts = segments(self._blocks[number], self._sizes)
        self._reading[number] = _Reading(parts, {})
        self._segments.extend((number, part) for part in parts)

    def _delay(self, action: Callable[[], None]) -> None:
        heapq.heappush(self._delayed, (time.monotonic() + DELAY_S, next(self._sequence), action))
