"""From which checkpoint an attempt goes on, and with which files each of its nodes begins."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from clusters.node_reports import heartbeat
from clusters.states import NodeStatus
from jobs.checkpoints.states import CheckpointState
from jobs.models import Attempt, AttemptNode, Checkpoint, CheckpointFile, Member, Run
from jobs.states import MemberState
from trainhub_launch.errors import SpecError
from trainhub_launch.order import CheckpointOrder, OrderedFile
from trainhub_launch.spec import RunSpec
from trainhub_launch.states import Phase
from workspaces.models import Workspace

# What an attempt has saved last is not waited for longer: its node may be stuck.
PATIENCE = timedelta(minutes=15)
USABLE = (CheckpointState.COMPLETE, CheckpointState.UNCONFIRMED)


def newest(run: Run) -> Checkpoint | None:
    """Returns the newest complete checkpoint of the run."""
    complete = Checkpoint.objects.filter(run=run, state=CheckpointState.COMPLETE)
    return complete.order_by("-number").first()


def order_of(part: AttemptNode, spec: RunSpec) -> CheckpointOrder:
    """Returns what the node is to do about checkpoints. Every node gets all files of the one from which the
    attempt goes on; if several nodes had a file of the same name, each gets its own."""
    files: dict[str, CheckpointFile] = {}
    if part.attempt.restores_id is not None:
        rows = CheckpointFile.objects.filter(checkpoint=part.attempt.restores_id).order_by("-node_rank")
        for row in rows:
            if row.path not in files or files[row.path].node_rank != part.node_rank:
                files[row.path] = row
    return CheckpointOrder(
        folder=spec.checkpoint.path,
        files=tuple(OrderedFile(row.path, row.size_bytes, row.sha256) for row in files.values()),
    )


def unsaved_sentence(run: Run) -> str:
    """Returns why the next attempt waits for what the last one has saved; "" if it need not."""
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
    return f"Waiting until {parts[0].node.name} has ended attempt {run.attempt} and saved its files."


def source_of(spec: RunSpec, workspace: Workspace) -> Checkpoint | None:
    """Returns the checkpoint of another run with which a new run begins. Raises SpecError."""
    if not spec.checkpoint.resume_from:
        return None
    run = Run.objects.for_workspace(workspace).filter(pk=spec.checkpoint.resume_from).first()
    if run is None:
        raise SpecError(
            "checkpoint.resume_from",
            "there is no run with this id in this workspace; leave the field out to begin anew",
        )
    if spec.checkpoint.number is None:
        checkpoint = newest(run)
        if checkpoint is None:
            raise SpecError(
                "checkpoint.resume_from",
                f"run {run.number} has no complete checkpoint; leave the field out to begin anew",
            )
        return checkpoint
    usable = Checkpoint.objects.filter(run=run, state__in=USABLE)
    chosen = usable.filter(number=spec.checkpoint.number).first()
    if chosen is None:
        numbers = ", ".join(map(str, usable.values_list("number", flat=True))) or "none"
        sentence = f"run {run.number} keeps no checkpoint {spec.checkpoint.number}; it has: {numbers}"
        raise SpecError("checkpoint.number", sentence)
    return chosen


def copy_to(run: Run, source: Checkpoint) -> None:
    """Gives the run a copy of the checkpoint, which stays when the other run is deleted. The files are stored
    once. A person has chosen it: it counts as complete."""
    copy = Checkpoint.objects.create(
        run=run,
        attempt=0,
        number=1,
        name=source.name,
        sign=source.sign,
        state=CheckpointState.COMPLETE,
        origin=f"run {source.run.number}, checkpoint {source.number}",
        size_bytes=source.size_bytes,
        file_count=source.file_count,
        finished_at=timezone.now(),
    )
    CheckpointFile.objects.bulk_create(
        CheckpointFile(
            checkpoint=copy,
            node_rank=file.node_rank,
            path=file.path,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
        )
        for file in source.files.all()
    )
