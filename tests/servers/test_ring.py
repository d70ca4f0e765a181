"""Which server answers for a node, without any server."""

from __future__ import annotations

import time
from collections import Counter

from workspaces.servers.ring import Ring
from workspaces.servers.server_registry import DEAD_AFTER_S, OtherServer

KEYS = [f"node-{number}" for number in range(3000)]
PEERS = [OtherServer(f"{number:032x}", f"web-{number}", f"127.0.0.1:{8010 + number}") for number in range(3)]


def ring_of(own: OtherServer, peers: list[OtherServer]) -> Ring:
    ring = Ring()
    ring.update(own.id, peers, time.monotonic())
    return ring


def owner_of(own: OtherServer, peers: list[OtherServer], key: str) -> OtherServer:
    return ring_of(own, peers).owner(key) or own


def test_all_servers_agree_whatever_order_they_know_each_other_in() -> None:
    rings = [ring_of(own, order) for own in PEERS for order in (PEERS, PEERS[::-1])]
    for key in KEYS[:200]:
        assert len({(ring.owner(key) or OtherServer(ring.own_id, "", "")).id for ring in rings}) == 1


def test_nodes_are_dealt_out_evenly() -> None:
    ring = ring_of(PEERS[0], PEERS)
    counts = Counter(owner.id if (owner := ring.owner(key)) else PEERS[0].id for key in KEYS)
    assert len(counts) == 3
    assert all(abs(count - 1000) < 150 for count in counts.values()), counts


def test_only_the_nodes_of_a_server_that_goes_move() -> None:
    gone = PEERS[2]
    before, after = ring_of(PEERS[0], PEERS), ring_of(PEERS[0], PEERS[:2])
    moved = [key for key in KEYS if before.owner(key) != after.owner(key)]
    assert moved == [key for key in KEYS if before.owner(key) == gone]


def test_one_that_cannot_be_reached_is_left_out_for_a_while() -> None:
    ring = ring_of(PEERS[0], PEERS[:2])
    key = next(key for key in KEYS if ring.owner(key) == PEERS[1])
    ring.avoid(PEERS[1])
    assert ring.owns(key)
    assert not ring.is_alone


def test_one_alone_answers_for_all_and_needs_no_row() -> None:
    ring = Ring()
    assert ring.is_alone
    assert ring.is_current
    assert all(ring.owns(key) for key in KEYS[:50])


def test_one_that_was_stopped_for_long_is_not_current_until_it_has_renewed_its_row() -> None:
    ring = Ring()
    ring.update(PEERS[0].id, PEERS, time.monotonic() - DEAD_AFTER_S - 1)
    assert not ring.is_current
    ring.update(PEERS[0].id, PEERS, time.monotonic())
    assert ring.is_current
