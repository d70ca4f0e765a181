"""Decides which stored files a node may name as outputs: those that it has sent itself, or that the run's
workspace has.

Hashes are not secret, so a hash alone must not give access to a file. The upload protocol names no attempt;
therefore a blob counts as sent for every attempt that the node holds at that moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import QuerySet

from clusters.models import Node
from jobs.models import AttemptNode, SentBlob
from workspaces.stored_files import blob_names

BATCH_SIZE = 500


def record_sent(node: Node, sha256: str) -> None:
    """Records that the node has sent the whole file, for every attempt that it holds at present."""
    parts = _claimed_parts(node).values_list("pk", flat=True)
    SentBlob.objects.bulk_create(
        [SentBlob(part_id=part, digest=sha256) for part in parts], ignore_conflicts=True
    )


def may_name(node: Node, sha256: str) -> bool:
    """Returns whether the node may learn that the blob is stored and skip the upload: it may name the blob as
    an output of every attempt that it holds."""
    workspace_by_part = dict(_claimed_parts(node).values_list("pk", "attempt__run__workspace_id"))
    sent = set(
        SentBlob.objects.filter(part__in=workspace_by_part, digest=sha256).values_list("part_id", flat=True)
    )
    others = {workspace for part, workspace in workspace_by_part.items() if part not in sent}
    return bool(workspace_by_part) and all(blob_names.named_in(workspace, [sha256]) for workspace in others)


def allowed_hashes(part: AttemptNode, workspace_id: int, hashes: Iterable[str]) -> set[str]:
    """Returns those of the hashes that the node may name as outputs of this part of an attempt."""
    requested = set(hashes)
    if part.sends_unrecorded:
        return requested
    sent: set[str] = set()
    for some in _batches(requested):
        sent.update(SentBlob.objects.filter(part=part, digest__in=some).values_list("digest", flat=True))
    for some in _batches(requested - sent):
        sent |= blob_names.named_in(workspace_id, some)
    return sent


def forget_settled() -> None:
    """Deletes the records of files sent for settled parts, for which the node reports no more outputs."""
    SentBlob.objects.exclude(part__settled_at=None).delete()


def _claimed_parts(node: Node) -> QuerySet[AttemptNode]:
    return AttemptNode.objects.filter(node=node, settled_at=None).exclude(claimed_at=None)


def _batches(hashes: set[str]) -> Iterator[list[str]]:
    ordered = sorted(hashes)
    for start in range(0, len(ordered), BATCH_SIZE):
        yield ordered[start : start + BATCH_SIZE]
