"""Collects the parts of a checkpoint from the nodes of an attempt, and keeps it once it has all of them.

A node announces what it has. The hub gives it a number, and asks every node of the attempt for its part: with
the answer to the announcement, and to the reports of the others (`Attempt.pending_checkpoints`). So each node
looks at its part after the announcement, when all ranks have written theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Max, Sum
from django.utils import timezone

from jobs.attempts import attempt_warnings
from jobs.checkpoints import trimming
from jobs.checkpoints.part_files import CheckpointRefused, PartDelivery, store_part
from jobs.checkpoints.states import HIDDEN, CheckpointState
from jobs.models import Attempt, AttemptNode, Checkpoint, CheckpointFile, CheckpointPart, FinalFolder, Run
from jobs.quotas import disk_quota
from live.publish import publish_on_commit
from live.topics import run_topic
from trainhub_launch.states import CheckpointSign
from workspaces.stored_files import paths
from workspaces.stored_files.blob_writer import BlobWriter

# A node does not announce such a version again.
REFUSED = 0
# Of one attempt at the same time. Others are taken when their nodes announce them again.
MAX_COLLECTING = 4
# DeepSpeed's file, in the folder of checkpoints, with the name of the newest complete one.
LATEST = "latest"
# What a node that is away does not deliver for so long is not waited for.
PATIENCE = timedelta(minutes=15)


@dataclass(frozen=True)
class Announced:
    """A checkpoint as its node sees it. `version` changes with its files; `wrong`: why it cannot be kept."""

    name: str
    version: str
    sign: CheckpointSign
    size: int
    wrong: str = ""


def announce(part: AttemptNode, entries: Sequence[Announced], names: Sequence[str] | None) -> dict[str, int]:
    """Returns, by name, the number of each checkpoint of which the hub now expects this node's part, and
    REFUSED for what it does not keep; names that are absent are to be announced again later.

    `names`: all that the node has, once no rank lives there any more."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=part.attempt.run_id)
        attempt = Attempt.objects.get(pk=part.attempt_id)
        numbers = {}
        for entry in entries:
            number = _take(run, attempt, part, entry)
            if number is not None:
                numbers[entry.name] = number
        if names is not None:
            FinalFolder.objects.update_or_create(part=part, defaults={"names": list(names)})
            for checkpoint in _collecting(attempt):
                _finish_if_whole(checkpoint, attempt)
        _store_pending(attempt)
    return numbers


def deliver(part: AttemptNode, number: int, delivery: PartDelivery) -> None:
    """Stores which files are the node's part of a checkpoint. Raises CheckpointRefused."""
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=part.attempt.run_id)
        attempt = Attempt.objects.get(pk=part.attempt_id)
        checkpoint = Checkpoint.objects.filter(run=run, attempt=attempt.number, number=number).first()
        if checkpoint is None:
            raise CheckpointRefused("The attempt has no checkpoint of that number.")
        if checkpoint.state != CheckpointState.COLLECTING:
            return  # the answer to an earlier delivery was lost
        if delivery.torn:
            _tear(checkpoint, attempt, delivery.torn[:400], actor=f"node {part.node.name}")
        else:
            store_part(run, checkpoint, part, delivery)
            _finish_if_whole(checkpoint, attempt)
        _store_pending(attempt)


def give_up(now: datetime | None = None) -> None:
    """Gives up what nodes that are gone will not deliver."""
    now = now or timezone.now()
    for checkpoint in Checkpoint.objects.filter(state=CheckpointState.COLLECTING).select_related("run"):
        attempt = Attempt.objects.filter(run=checkpoint.run, number=checkpoint.attempt).first()
        if attempt is None or attempt.ended_at is None:
            continue
        is_settled = not AttemptNode.objects.filter(attempt=attempt, settled_at=None).exists()
        if is_settled or attempt.ended_at < now - PATIENCE:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=checkpoint.run_id)
                checkpoint.refresh_from_db()
                if checkpoint.state == CheckpointState.COLLECTING:
                    _tear(checkpoint, attempt, "a node ended before it had delivered its part", actor="hub")
                    _store_pending(attempt)


def _take(run: Run, attempt: Attempt, part: AttemptNode, entry: Announced) -> int | None:
    if entry.wrong or paths.path_problem(entry.name):
        why = entry.wrong or paths.path_problem(entry.name)
        _warn(attempt, f"{paths.display_path(entry.name)} is not kept as a checkpoint: {why}.", part)
        return REFUSED
    rows = Checkpoint.objects.filter(run=run, attempt=attempt.number, name=entry.name)
    latest = rows.exclude(state__in=HIDDEN).last()
    if latest is not None:
        own_part = CheckpointPart.objects.filter(checkpoint=latest, node_rank=part.node_rank).first()
        is_same = own_part is not None and own_part.version == entry.version
        if own_part is not None and is_same and own_part.is_delivered:
            return None if latest.state == CheckpointState.COLLECTING else latest.number
        if latest.state == CheckpointState.COLLECTING:
            if own_part is not None and not is_same:
                return None  # newer than what is being collected: its turn comes next
            if entry.sign and not latest.sign:
                Checkpoint.objects.filter(pk=latest.pk).update(sign=entry.sign)
            _note_version(latest, part, entry)
            return latest.number
    if len(_collecting(attempt)) >= MAX_COLLECTING:
        return None
    in_store = attempt.checkpoint_datastore_id is not None
    full = "" if in_store else disk_quota.refusal(run.workspace, run.created_by, entry.size)
    if full:
        _warn(attempt, f"{paths.display_path(entry.name)} is not kept as a checkpoint: {full}", part)
        return REFUSED
    highest = run.checkpoints.aggregate(highest=Max("number"))["highest"]
    checkpoint = Checkpoint.objects.create(
        run=run,
        attempt=attempt.number,
        number=(highest or 0) + 1,
        name=entry.name,
        sign=entry.sign,
        datastore_id=attempt.checkpoint_datastore_id,
        store_path=attempt.checkpoint_path if in_store else "",
    )
    _note_version(checkpoint, part, entry)
    return checkpoint.number


def _note_version(checkpoint: Checkpoint, part: AttemptNode, entry: Announced) -> None:
    CheckpointPart.objects.update_or_create(
        checkpoint=checkpoint, node_rank=part.node_rank, defaults={"version": entry.version}
    )


def _finish_if_whole(checkpoint: Checkpoint, attempt: Attempt) -> None:
    ranks = set(AttemptNode.objects.filter(attempt=attempt).values_list("node_rank", flat=True))
    delivered = set(checkpoint.parts.filter(is_delivered=True).values_list("node_rank", flat=True))
    finals = FinalFolder.objects.filter(part__attempt=attempt).select_related("part")
    without = {final.part.node_rank for final in finals if checkpoint.name not in final.names}
    if ranks - delivered - without:
        return
    if not checkpoint.files.exists() and not checkpoint.stored_files.exists():
        _tear(checkpoint, attempt, "it was deleted before it was saved", actor="hub")
        return
    checkpoint.refresh_from_db(fields=["sign"])
    if checkpoint.sign == CheckpointSign.LATEST:
        _add_latest(checkpoint)
    totals = [
        rows.aggregate(size=Sum("size_bytes", default=0), count=Count("pk"))
        for rows in (checkpoint.files, checkpoint.stored_files)
    ]
    checkpoint.size_bytes = sum(total["size"] for total in totals)
    checkpoint.file_count = sum(total["count"] for total in totals)
    checkpoint.state = CheckpointState.COMPLETE if checkpoint.sign else CheckpointState.UNCONFIRMED
    checkpoint.finished_at = timezone.now()
    checkpoint.save(update_fields=["state", "size_bytes", "file_count", "finished_at"])
    publish_on_commit(run_topic(checkpoint.run_id), {"type": "event.added", "run": checkpoint.run_id})
    # Deletes files, which no rollback would bring back.
    transaction.on_commit(partial(trimming.trim, checkpoint.run_id))


def _add_latest(checkpoint: Checkpoint) -> None:
    """Adds the file by which DeepSpeed finds the checkpoint: in the run's folder it may name a newer one by
    now. One in the checkpoint itself, or from a node of an earlier version, stays."""
    names = (LATEST, f"{checkpoint.name}/{LATEST}")
    if any(rows.filter(path__in=names).exists() for rows in (checkpoint.files, checkpoint.stored_files)):
        return
    with BlobWriter() as writer:
        writer.write(checkpoint.name.encode())
        sha256 = writer.finish()
    node_rank = checkpoint.parts.filter(is_delivered=True).values_list("node_rank", flat=True)[0]
    CheckpointFile.objects.create(
        checkpoint=checkpoint, node_rank=node_rank, path=LATEST, size_bytes=writer.size, sha256=sha256
    )


def _tear(checkpoint: Checkpoint, attempt: Attempt, why: str, *, actor: str) -> None:
    checkpoint.state, checkpoint.detail = CheckpointState.TORN, why
    checkpoint.finished_at = timezone.now()
    checkpoint.save(update_fields=["state", "detail", "finished_at"])
    sentence = f"The checkpoint {paths.display_path(checkpoint.name)} is not kept: {why.rstrip('.')}."
    attempt_warnings.add(attempt, [sentence], actor=actor)
    transaction.on_commit(partial(trimming.trim, checkpoint.run_id))


def _warn(attempt: Attempt, sentence: str, part: AttemptNode) -> None:
    attempt_warnings.add(attempt, [sentence], actor=f"node {part.node.name}")


def _collecting(attempt: Attempt) -> list[Checkpoint]:
    return list(
        Checkpoint.objects.filter(
            run_id=attempt.run_id, attempt=attempt.number, state=CheckpointState.COLLECTING
        )
    )


def _store_pending(attempt: Attempt) -> None:
    pending = [[checkpoint.number, checkpoint.name] for checkpoint in _collecting(attempt)]
    if pending != attempt.pending_checkpoints:
        Attempt.objects.filter(pk=attempt.pk).update(pending_checkpoints=pending)
