"""Which files are a node's part of a checkpoint: on the hub, or in the datastore of the attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.checkpoints import stores
from jobs.models import AttemptNode, Checkpoint, CheckpointFile, CheckpointPart, Run, StoredCheckpointFile
from jobs.transfer import senders
from trainhub_launch.data.checkpoint_order import MAX_CHECKPOINT_FILES, part_folder
from workspaces.stored_files import blob_cache, blobs, paths


class CheckpointRefused(Exception):
    """The message is a sentence for the node's log."""


@dataclass(frozen=True)
class DeliveredFile:
    """`size` in bytes, and `key`: only of a file that lies in a datastore. `key`: which file of an earlier
    checkpoint has the same content; "" = it has been written for this one."""

    path: str
    sha256: str
    size: int = 0
    key: str = ""


@dataclass(frozen=True)
class PartDelivery:
    """A node's part of a checkpoint. `torn`: why there is none. `version`: of the part, if its files lie in
    the datastore of the attempt; "" = they are on the hub."""

    files: Sequence[DeliveredFile]
    torn: str = ""
    version: str = ""


def store_part(run: Run, checkpoint: Checkpoint, part: AttemptNode, delivery: PartDelivery) -> None:
    """Stores the files, in place of an earlier delivery of the node. Raises CheckpointRefused for a file that
    the node may not name, or has not sent."""
    if len(delivery.files) > MAX_CHECKPOINT_FILES:
        raise CheckpointRefused(f"A part of a checkpoint may have at most {MAX_CHECKPOINT_FILES:,} files.")
    for file in delivery.files:
        wrong = paths.path_problem(file.path)
        if wrong:
            raise CheckpointRefused(f"{paths.display_path(file.path)} cannot be stored: {wrong}.")
    of_hub: list[CheckpointFile] = []
    stored: list[StoredCheckpointFile] = []
    if delivery.version:
        stored.extend(_stored_files(checkpoint, part, delivery))
    else:
        of_hub.extend(_hub_files(run, checkpoint, part, delivery.files))
    CheckpointFile.objects.filter(checkpoint=checkpoint, node_rank=part.node_rank).delete()
    StoredCheckpointFile.objects.filter(checkpoint=checkpoint, node_rank=part.node_rank).delete()
    CheckpointFile.objects.bulk_create(of_hub)
    StoredCheckpointFile.objects.bulk_create(stored)
    CheckpointPart.objects.update_or_create(
        checkpoint=checkpoint, node_rank=part.node_rank, defaults={"is_delivered": True}
    )


def _hub_files(
    run: Run, checkpoint: Checkpoint, part: AttemptNode, files: Sequence[DeliveredFile]
) -> Iterator[CheckpointFile]:
    allowed = senders.allowed_hashes(part, run.workspace_id, (file.sha256 for file in files))
    for file in files:
        if file.sha256 not in allowed or not blobs.hold(file.sha256):
            raise CheckpointRefused(f"{paths.display_path(file.path)} has not been uploaded by this node.")
        yield CheckpointFile(
            checkpoint=checkpoint,
            node_rank=part.node_rank,
            path=file.path,
            size_bytes=blob_cache.size_of(file.sha256),
            sha256=file.sha256,
        )


def _stored_files(
    checkpoint: Checkpoint, part: AttemptNode, delivery: PartDelivery
) -> Iterator[StoredCheckpointFile]:
    if not checkpoint.store_path:
        raise CheckpointRefused("The checkpoints of this attempt go to the hub.")
    common = stores.usable_files(checkpoint, [file.key for file in delivery.files if file.key])
    for file in delivery.files:
        if file.key and common.get(file.key) != (file.size, file.sha256):
            raise CheckpointRefused(f"{paths.display_path(file.key)} is not kept any more.")
        yield StoredCheckpointFile(
            checkpoint=checkpoint,
            node_rank=part.node_rank,
            path=file.path,
            key=file.key or f"{part_folder(checkpoint.number, delivery.version)}/{file.path}",
            size_bytes=file.size,
            digest=file.sha256,
        )
