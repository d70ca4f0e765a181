"""Which node reads which block from the store."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from clusters.models import Node
from datastores.models import BlockHashes, PeerServer, Swarm, SwarmMember
from datastores.swarms import exchange as exchanges
from datastores.swarms.exchange import NodeNews, OtherBlocks, SwarmAnswer, exchange
from tests.jobs.builders import node
from tests.people import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db
FILES = "ab" * 32
BLOCKS = 10


@pytest.fixture
def workspace() -> Workspace:
    return make_workspace("birds")


@pytest.fixture
def alpha() -> Node:
    return node("alpha")


@pytest.fixture
def beta() -> Node:
    return node("beta")


def hashes(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "big") + bytes([number]) * 32 for number in numbers)


class Talk:
    """What a node says, and has heard last."""

    def __init__(self, workspace: Workspace, node: Node) -> None:
        self.workspace = workspace
        self.node = node
        self.after = 0

    def __call__(self, **news: object) -> SwarmAnswer:
        news_of_node = NodeNews(**{"blocks": BLOCKS, "after": self.after, **news})  # type: ignore[arg-type]
        answer = exchange(self.workspace.pk, self.node, FILES, news_of_node)
        self.after = answer.after
        return answer


@pytest.fixture
def by_alpha(workspace: Workspace, alpha: Node) -> Talk:
    return Talk(workspace, alpha)


@pytest.fixture
def by_beta(workspace: Workspace, beta: Node) -> Talk:
    return Talk(workspace, beta)


def test_each_block_is_read_by_one_node(by_alpha: Talk, by_beta: Talk) -> None:
    assert by_alpha(wants=4, is_first=True).read == [0, 1, 2, 3]
    assert by_beta(wants=4, is_first=True).read == [4, 5, 6, 7]
    assert by_alpha(wants=4).read == [8, 9]
    assert by_beta(wants=4).read == []


def test_hashes_are_told_once(by_alpha: Talk, by_beta: Talk, alpha: Node) -> None:
    by_alpha(wants=2)
    by_alpha(hashes=hashes(0, 1))
    rows = by_beta().rows
    assert [(row.node_id, bytes(row.hashes)) for row in rows] == [(alpha.pk, hashes(0, 1))]
    assert by_beta().rows == []


def test_what_a_silent_node_was_reading_is_read_by_another(by_alpha: Talk, by_beta: Talk) -> None:
    by_alpha(wants=4)
    by_alpha(hashes=hashes(0))
    assert by_beta(wants=9).read == [4, 5, 6, 7, 8, 9]
    SwarmMember.objects.filter(node=by_alpha.node).update(
        active_at=timezone.now() - exchanges.SILENT - timedelta(seconds=1)
    )
    assert by_beta(wants=9).read == [1, 2, 3]


@pytest.mark.parametrize("why", ["is_first", "is_stalled", "is_complete"])
def test_what_a_node_gives_up_is_read_by_another(by_alpha: Talk, by_beta: Talk, why: str) -> None:
    by_alpha(wants=4)
    by_alpha(**{why: True})
    assert by_beta(wants=4).read == [0, 1, 2, 3]


def test_what_no_node_gives_is_read_again_by_one(by_alpha: Talk, by_beta: Talk) -> None:
    by_alpha(wants=10)
    by_alpha(hashes=hashes(*range(10)), is_complete=True)
    assert by_beta(needs=[3], wants=1).read == [], "it learns only now who has it"
    assert by_alpha(needs=[3, 7], wants=1).read == [3]
    assert by_beta(needs=[3, 7], wants=4).read == [7]
    assert by_alpha(needs=[3, 7], wants=4).read == [], "another reads it, and this node itself the first"
    by_beta(hashes=hashes(7))
    assert [bytes(row.hashes) for row in by_alpha().rows][-1] == hashes(7)


def test_a_stalled_node_gets_nothing_to_read(by_alpha: Talk) -> None:
    assert by_alpha(wants=4, needs=[1], is_stalled=True).read == []


def test_other_blocks_are_refused(by_alpha: Talk, by_beta: Talk) -> None:
    by_alpha()
    with pytest.raises(OtherBlocks):
        by_beta(blocks=BLOCKS + 1)


def test_peers_are_those_that_serve(by_alpha: Talk, by_beta: Talk, beta: Node) -> None:
    by_beta()
    assert by_alpha().peers == []
    PeerServer.objects.create(node=beta, address="10.0.0.2", port=4000, fingerprint="cd" * 32)
    assert by_alpha().peers == [beta]
    Node.objects.filter(pk=beta.pk).update(revoked_at=timezone.now())
    assert by_alpha().peers == []


def test_hashes_do_not_grow_for_ever(by_alpha: Talk, by_beta: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "FEW_BLOCKS", 0)
    for _ in range(6):
        by_alpha(hashes=hashes(*range(10)))
    assert BlockHashes.objects.count() == 1
    assert Swarm.objects.get().hash_count == BLOCKS
    assert [bytes(row.hashes) for row in by_beta().rows] == [hashes(*range(10))]


def test_long_answers_come_in_parts(by_alpha: Talk, by_beta: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MAX_ANSWER_HASHES", 2)
    for number in range(5):
        by_alpha(hashes=hashes(number))
    assert [len(by_beta().rows) for _ in range(4)] == [2, 2, 1, 0]


def test_what_nobody_uses_is_forgotten(by_alpha: Talk, workspace: Workspace, beta: Node) -> None:
    by_alpha()
    Swarm.objects.update(used_at=timezone.now() - exchanges.FORGOTTEN - timedelta(days=1))
    exchange(workspace.pk, beta, "cd" * 32, NodeNews(1))
    assert [swarm.files for swarm in Swarm.objects.all()] == ["cd" * 32]
