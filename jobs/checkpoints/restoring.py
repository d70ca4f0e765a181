"""From which checkpoint an attempt goes on, and with which files each of its nodes begins."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from clusters.node_reports import heartbeat
from clusters.states import NodeStatus
from jobs.checkpoints import stores
from jobs.checkpoints.states import CheckpointState
from jobs.models import (
    Attempt,
    AttemptNode,
    Checkpoint,
    CheckpointFile,
    Member,
    Run,
    StoredCheckpointFile,
)
from jobs.states import MemberState
from trainhub_launch.data.checkpoint_order import CheckpointOrder, OrderedFile, StoredFile
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from trainhub_launch.states import Phase
from workspaces.database.compiled_queries import compiled

# What an attempt has saved last is not waited for longer: its node may be stuck.
PATIENCE = timedelta(minutes=15)


def newest(run: Run) -> Checkpoint | None:
    """Returns the newest complete checkpoint of the run."""
    return next(iter(_newest(run.pk)), None)


@compiled
def _newest(run_id: str) -> QuerySet[Checkpoint]:
    complete = Checkpoint.objects.filter(run_id=run_id, state=CheckpointState.COMPLETE)
    return complete.order_by("-number")[:1]


def order_of(part: AttemptNode, spec: RunSpec) -> CheckpointOrder:
    """Returns what the node is to do about checkpoints. Every node gets all files of the one from which the
    attempt goes on; if several nodes had a file of the same name, each gets its own. Raises SpecError if they
    lie in a datastore that is not there any more."""
    attempt, store = part.attempt, stores.write_folder(part.attempt)
    if attempt.restores is None:
        return CheckpointOrder(spec.checkpoint.path, store=store)
    check_readable(attempt.restores)
    rows: list[CheckpointFile | StoredCheckpointFile] = [
        *attempt.restores.files.all(),
        *attempt.restores.stored_files.all(),
    ]
    files: dict[str, CheckpointFile | StoredCheckpointFile] = {}
    for row in sorted(rows, key=lambda row: -row.node_rank):
        if row.path not in files or files[row.path].node_rank != part.node_rank:
            files[row.path] = row
    return CheckpointOrder(
        folder=spec.checkpoint.path,
        files=tuple(
            OrderedFile(row.path, row.size_bytes, row.sha256)
            for row in files.values()
            if isinstance(row, CheckpointFile)
        ),
        store=store,
        source=stores.source_folder(attempt.restores),
        stored_files=tuple(
            StoredFile(row.path, row.size_bytes, row.digest, row.key)
            for row in files.values()
            if isinstance(row, StoredCheckpointFile)
        ),
    )


def check_readable(checkpoint: Checkpoint) -> None:
    """Raises SpecError if the checkpoint lies in a datastore that is not there any more."""
    if checkpoint.store_path and checkpoint.datastore is None and checkpoint.stored_files.exists():
        raise SpecError(
            "checkpoint.resume_from",
            f"{checkpoint} lies at {checkpoint.place}; choose another one, or leave the field out to begin "
            "anew",
        )


def unsaved_sentence(run: Run) -> str:
    """Returns why whatever goes on from the run waits for what its last attempt has saved; "" if it need
    not."""
    if run.attempt == 0:
        return ""
    now = timezone.now()
    last = Attempt.objects.filter(run=run, number=run.attempt).first()
    if last is None or last.ended_at is None or last.ended_at < now - PATIENCE:
        return ""
    unsettled = AttemptNode.objects.select_related("node").filter(attempt=last, settled_at=None)
    parts = list(unsettled.exclude(claimed_at=None).exclude(phase=Phase.DONE))
    # Without the part of a node that is lost, nothing that the others still save becomes complete.
    is_lost = Member.objects.filter(attempt=last, state=MemberState.LOST).exists()
    if (
        not parts
        or is_lost
        or any(heartbeat.status(part.node, now) is not NodeStatus.READY for part in parts)
    ):
        return ""
    name = parts[0].node.name
    return f"Waiting until {name} has ended attempt {run.attempt} of run {run.number} and saved its files."
