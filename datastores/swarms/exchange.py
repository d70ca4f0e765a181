"""Says which node reads which block from the store, so that each is read about once in a cluster, and who has
which.

The hub gives out the blocks in their order to whoever asks for work. A node publishes the hash of a block
once it has read it; the others take the block from there and believe only that hash."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from clusters.models import Node
from datastores.swarms.models import BlockHashes, Swarm, SwarmMember

NUMBER_BYTES = 4
RECORD_BYTES = NUMBER_BYTES + 32
# Of 8 MiB: 32 TiB.
MAX_BLOCKS = 4 * 1024 * 1024
# Hashes in one answer, apart from its last row; the node asks again for the rest.
MAX_ANSWER_HASHES = 50_000
# Blocks may be read again, because no node has them any more. After so many times everything begins anew.
MAX_READ_TIMES, FEW_BLOCKS = 4, 10_000
# Blocks that a node may be reading at the same time.
MAX_READING = 256
# A node that was not heard for so long is not reading any more.
SILENT = timedelta(seconds=15)
# After which what nobody has used is forgotten.
FORGOTTEN = timedelta(days=30)
# Nodes in one answer.
MAX_PEERS = 64


class OtherBlocks(Exception):
    """The node divides the files into another number of blocks than the others."""


@dataclass(frozen=True)
class NodeNews:
    """What a node says. `blocks`: how many there are; `after`: the last row of hashes that it has; `hashes`:
    of blocks that it has read, as BlockHashes has them; `needs`: blocks that no node gives it; `wants`: how
    many it can read; `is_first`: a download begins, and what an earlier one was reading it does not read;
    `is_stalled`: what it was reading made no progress, so others are to read it; `is_complete`: it has all
    files."""

    blocks: int
    after: int = 0
    hashes: bytes = b""
    needs: Sequence[int] = ()
    wants: int = 0
    is_first: bool = False
    is_stalled: bool = False
    is_complete: bool = False


@dataclass(frozen=True)
class SwarmAnswer:
    """`read`: blocks that the node is to read; `rows`: new hashes; `after`: the last of them; `peers`: other
    nodes, first those that were heard last."""

    read: list[int]
    rows: list[BlockHashes]
    after: int
    peers: list[Node]


@transaction.atomic
def exchange(workspace_id: int, node: Node, files: str, news: NodeNews) -> SwarmAnswer:
    """Takes what `node` says, and answers it. Raises OtherBlocks."""
    swarm = _locked_swarm(workspace_id, node, files, news.blocks)
    member, _ = SwarmMember.objects.get_or_create(swarm=swarm, node=node)
    read = set(numbers_of(news.hashes))
    _store(swarm, node, news.hashes)
    reading = [number for number in member.reading if number not in read]
    if news.is_first or news.is_stalled or news.is_complete:
        swarm.returned, reading = [*swarm.returned, *reading], []
    rows = _rows(swarm, news.after)
    work = _assign(swarm, node, news, reading, rows)
    member.reading = reading + work
    member.active_at, member.is_complete = timezone.now(), news.is_complete
    member.save(update_fields=["reading", "active_at", "is_complete"])
    swarm.save(update_fields=["next_block", "returned", "hash_count", "used_at"])
    return SwarmAnswer(work, rows, rows[-1].pk if rows else news.after, _peers(swarm, node))


def numbers_of(hashes: bytes) -> list[int]:
    """Returns the numbers of the blocks of which these are the hashes."""
    return [
        int.from_bytes(hashes[start : start + NUMBER_BYTES], "big")
        for start in range(0, len(hashes), RECORD_BYTES)
    ]


def _store(swarm: Swarm, node: Node, hashes: bytes) -> None:
    if not hashes:
        return
    if swarm.hash_count > MAX_READ_TIMES * swarm.block_count + FEW_BLOCKS:
        swarm.hashes.all().delete()
        swarm.next_block = swarm.hash_count = 0
        swarm.returned = []
    BlockHashes.objects.create(swarm=swarm, node=node, hashes=hashes)
    swarm.hash_count += len(hashes) // RECORD_BYTES


def _rows(swarm: Swarm, after: int) -> list[BlockHashes]:
    rows: list[BlockHashes] = []
    count = 0
    for row in swarm.hashes.filter(pk__gt=after).iterator(100):
        rows.append(row)
        count += len(row.hashes) // RECORD_BYTES
        if count >= MAX_ANSWER_HASHES:
            break
    return rows


def _locked_swarm(workspace_id: int, node: Node, files: str, blocks: int) -> Swarm:
    key = {"cluster_id": node.cluster_id, "files": files}
    now = timezone.now()
    swarm = Swarm.objects.select_for_update().filter(**key).first()
    if swarm is None:
        Swarm.objects.filter(used_at__lt=now - FORGOTTEN).delete()
        defaults = {"workspace_id": workspace_id, "block_count": blocks}
        Swarm.objects.get_or_create(**key, defaults=defaults)
        swarm = Swarm.objects.select_for_update().get(**key)
    if swarm.block_count != blocks:
        raise OtherBlocks
    swarm.used_at = now
    return swarm


def _assign(
    swarm: Swarm, node: Node, news: NodeNews, reading: Collection[int], rows: Sequence[BlockHashes]
) -> list[int]:
    """Returns blocks that the node is to read, besides those that it is `reading`. `rows`: hashes that come
    with this answer: others have read those blocks since the node asked for them."""
    others = _busy_elsewhere(swarm, node)
    if news.is_stalled or news.is_complete:
        return []
    room = max(0, min(news.wants, MAX_READING - len(reading)))
    busy = {*others, *reading}
    # What the node cannot have otherwise comes first, then what others were told to read and have not.
    hashed = {number for row in rows for number in numbers_of(bytes(row.hashes))}
    queue = [number for number in dict.fromkeys(news.needs) if number not in busy | hashed]
    work = queue[:room]
    busy.update(work)
    rest = [number for number in dict.fromkeys(swarm.returned) if number not in busy]
    work += rest[: room - len(work)]
    swarm.returned = [number for number in rest if number not in work]
    fresh = range(swarm.next_block, min(swarm.block_count, swarm.next_block + room - len(work)))
    swarm.next_block += len(fresh)
    return [*work, *fresh]


def _busy_elsewhere(swarm: Swarm, node: Node) -> set[int]:
    """Returns what other nodes are reading. What those read that are silent goes back."""
    busy: set[int] = set()
    for member in swarm.members.exclude(node=node).exclude(reading=[]):
        if timezone.now() - member.active_at > SILENT:
            swarm.returned = [*swarm.returned, *member.reading]
            member.reading = []
            member.save(update_fields=["reading"])
        busy.update(member.reading)
    return busy


def _peers(swarm: Swarm, node: Node) -> list[Node]:
    members: Iterable[SwarmMember] = (
        swarm.members.exclude(node=node)
        .filter(node__revoked_at=None, node__peer_server__isnull=False)
        .select_related("node__peer_server")
        .order_by("-active_at")[:MAX_PEERS]
    )
    return [member.node for member in members]
