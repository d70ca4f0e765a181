"""Decides, together with the hub, which blocks this node reads from the store: about one node reads each."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainhub_node.data.peers.block_board import BlockBoard
from trainhub_node.data.peers.hub_exchange import MAX_HASHES, MAX_NEEDS, ExchangeFailed, HubExchange
from trainhub_node.data.peers.peer_links import PeerLinks

# Between two exchanges with the hub.
SHORTEST_S, LONGEST_S = 0.3, 0.8
# A hub is asked less often by each of more nodes than this.
CALM_PEERS = 8
# Blocks that a node reads at the same time, at least and at most; in between as many as it reads in so long.
MIN_READING, MAX_READING, READING_S = 4, 64, 2.0
# Nothing comes from the store: other nodes read what this one should have read.
STALLED_S = 20.0
# After which a node to which nothing comes any more reads everything alone, and after half of it if the hub
# does not answer.
PATIENCE_S = 60.0


class Coordinator:
    """One thread uses it. `on_note` is called with sentences for the log."""

    def __init__(
        self, board: BlockBoard, links: PeerLinks, exchange: HubExchange, on_note: Callable[[str], None]
    ) -> None:
        self.is_stalled = False
        """Whether something should come from the store and nothing does."""
        self._board = board
        self._links = links
        self._exchange = exchange
        self._on_note = on_note
        self._is_alone = False
        self._pause_s, self._earliest_at, self._next_at = SHORTEST_S, 0.0, 0.0
        self._began_at = self._answered_at = time.monotonic()
        # When the number of bytes was last another one: of all, and of those from the store.
        self._arrived, self._arrived_at = -1, self._began_at
        self._from_store, self._from_store_at = -1, self._began_at

    def step(self, arrived: int, *, is_busy: bool) -> None:
        """To be called again and again. `arrived`: the bytes that are here; `is_busy`: other work than
        transfers goes on here."""
        self._watch(arrived, is_busy=is_busy)
        now = time.monotonic()
        # The others wait for what was read here.
        next_at = self._next_at if not self._board.has_published else min(self._next_at, self._earliest_at)
        if self._is_alone or now < next_at:
            return
        is_news = self._talk(now - self._began_at)
        self._pause_s = SHORTEST_S if is_news else min(LONGEST_S, self._pause_s * 1.5)
        # All nodes of a large gang together ask little more often than those of a small one.
        calm = max(1.0, self._links.count / CALM_PEERS)
        self._earliest_at = time.monotonic() + SHORTEST_S * calm
        self._next_at = time.monotonic() + self._pause_s * calm

    def say_complete(self) -> None:
        """Tells the hub that later nodes can take everything from this one. Without that they ask others."""
        if self._is_alone:
            return
        try:
            self._exchange.exchange(self._board.take_published(MAX_HASHES), is_complete=True)
        except ExchangeFailed as error:
            self._on_note(f"Later nodes do not learn that this one has the files: {error}.")

    def _talk(self, elapsed_s: float) -> bool:
        """Tells the hub what is new here, and asks what is new elsewhere. Returns whether anything is."""
        if self.is_stalled:
            self._board.give_up_reading()
        target = MIN_READING + int(READING_S * self._board.blocks_read / max(1.0, elapsed_s))
        wants = 0 if self.is_stalled else max(0, min(MAX_READING, target) - self._board.outstanding)
        hashes = self._board.take_published(MAX_HASHES)
        try:
            news = self._exchange.exchange(
                hashes, self._board.needs(MAX_NEEDS), wants=wants, is_stalled=self.is_stalled
            )
        except ExchangeFailed as error:
            self._board.restore_published(hashes)
            if error.is_refusal:
                self._go_alone(str(error))
            return False
        self._answered_at = time.monotonic()
        self._links.update(news.peers)
        self._board.add_news(news)
        return bool(hashes or news.hashes or news.read)

    def _watch(self, arrived: int, *, is_busy: bool) -> None:
        now, from_store = time.monotonic(), arrived - self._links.total_bytes
        if from_store != self._from_store or is_busy:
            self._from_store, self._from_store_at, self.is_stalled = from_store, now, False
        elif not self._board.outstanding and not self.is_stalled:
            self._from_store_at = now
        elif now - self._from_store_at > STALLED_S:
            self.is_stalled = True
        if arrived != self._arrived or is_busy:
            self._arrived, self._arrived_at = arrived, now
        if self._is_alone or now - self._arrived_at < PATIENCE_S / 2:
            return
        if now - self._answered_at > PATIENCE_S / 2:
            self._go_alone("the hub does not answer")
        elif now - self._arrived_at > PATIENCE_S:
            self._go_alone("nothing came from other nodes")

    def _go_alone(self, reason: str) -> None:
        self._is_alone = True
        self._on_note(f"Everything that is missing is read from the store, because {reason}.")
        self._board.read_alone()
