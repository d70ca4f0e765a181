"""Which stored files a node may name as outputs: those whose bytes it has sent itself, or that its run's
workspace has.

Hashes are no secret, so a hash alone gives nobody a file. The protocol of uploads names no attempt; therefore
a blob counts as sent for every attempt that the node holds at that moment: the node had the bytes while it
held each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import QuerySet

from clusters.models import Node
from jobs.models import AttemptNode, SentBlob
from workspaces.stored_files import blob_gc

BATCH_SIZE = 500


def record_sent(node: Node, sha256: str) -> None:
    """The node has just sent the whole file."""
    parts = _claimed_parts(node).values_list("pk", flat=True)
    SentBlob.objects.bulk_create(
        [SentBlob(part_id=part, digest=sha256) for part in parts], ignore_conflicts=True
    )


def may_name(node: Node, sha256: str) -> bool:
    """Whether the node may learn that the blob is stored, and need not send it: it could name it for each
    attempt it holds."""
    workspace_by_part = dict(_claimed_parts(node).values_list("pk", "attempt__run__workspace_id"))
    sent = set(
        SentBlob.objects.filter(part__in=workspace_by_part, digest=sha256).values_list("part_id", flat=True)
    )
    others = {workspace for part, workspace in workspace_by_part.items() if part not in sent}
    return bool(workspace_by_part) and all(blob_gc.named_in(workspace, [sha256]) for workspace in others)


def allowed_hashes(part: AttemptNode, workspace_id: int, hashes: Iterable[str]) -> set[str]:
    """Those of the hashes that the node may name as outputs of this part of an attempt."""
    requested = set(hashes)
    if part.sends_unrecorded:
        return requested
    sent: set[str] = set()
    for some in _batches(requested):
        sent.update(SentBlob.objects.filter(part=part, digest__in=some).values_list("digest", flat=True))
    for some in _batches(requested - sent):
        sent |= blob_gc.named_in(workspace_id, some)
    return sent


def forget_settled() -> None:
    """What was sent for attempts of which the node has nothing more to say."""
    SentBlob.objects.exclude(part__settled_at=None).delete()


def _claimed_parts(node: Node) -> QuerySet[AttemptNode]:
    return AttemptNode.objects.filter(node=node, settled_at=None).exclude(claimed_at=None)


def _batches(hashes: set[str]) -> Iterator[list[str]]:
    ordered = sorted(hashes)
    for start in range(0, len(ordered), BATCH_SIZE):
        yield ordered[start : start + BATCH_SIZE]
