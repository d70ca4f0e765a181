"""Nodes that are played by hand, and save checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from jobs.checkpoints import collecting
from jobs.checkpoints.collecting import Announced
from jobs.checkpoints.part_files import DeliveredFile, PartDelivery
from jobs.models import AttemptNode, Checkpoint, Run
from jobs.transfer import senders
from tests.jobs.builders import Played
from trainhub_launch.states import CheckpointSign
from workspaces.stored_files import blobs

WEIGHTS = b"weights"
RENAMED = CheckpointSign.RENAMED


def part_of(played: Played, run: Run, attempt: int = 1) -> AttemptNode:
    return AttemptNode.objects.select_related("attempt", "node").get(
        node=played.node, attempt__run=run, attempt__number=attempt
    )


def send(played: Played, data: bytes) -> str:
    """Stores a file as if this node had uploaded it."""
    sha256 = hashlib.sha256(data).hexdigest()
    part = blobs.part_path()
    part.write_bytes(data)
    blobs.publish(part, sha256)
    senders.record_sent(played.node, sha256)
    return sha256


def announce(
    played: Played,
    run: Run,
    *names: str,
    version: str = "a1",
    sign: CheckpointSign = RENAMED,
    final: Sequence[str] | None = None,
    wrong: str = "",
) -> dict[str, int]:
    entries = [Announced(name, version, sign, len(WEIGHTS), wrong) for name in names]
    return collecting.announce(part_of(played, run), entries, final)


def deliver(
    played: Played, run: Run, number: int, files: dict[str, bytes] | None = None, torn: str = ""
) -> None:
    delivered = [DeliveredFile(path, send(played, data)) for path, data in (files or {}).items()]
    collecting.deliver(part_of(played, run), number, PartDelivery(delivered, torn))


def save(played: Played, run: Run, name: str, data: bytes = WEIGHTS, sign: CheckpointSign = RENAMED) -> int:
    """A whole checkpoint of a run on one node."""
    version = hashlib.sha256(name.encode() + data).hexdigest()[:32]
    number = announce(played, run, name, version=version, sign=sign)[name]
    deliver(played, run, number, {name: data})
    return number


def states(run: Run) -> dict[str, str]:
    return {row.name: row.state for row in Checkpoint.objects.filter(run=run)}
