"""The checkpoint of another run with which a run begins: which one, and the copy that the new run keeps.

Nodes send the last checkpoints after the end of a run. Somebody who goes on from its newest one at once means
these, so the new run waits for them in the queue, and gets its copy when it is placed."""

from __future__ import annotations

from django.utils import timezone

from jobs.checkpoints import restoring
from jobs.checkpoints.states import USABLE, CheckpointState
from jobs.models import Checkpoint, CheckpointFile, Run, StoredCheckpointFile
from jobs.retention.removals import removal_sentence
from jobs.states import DataKind
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace


def source_of(spec: RunSpec, workspace: Workspace) -> Checkpoint | None:
    """Returns the checkpoint of another run with which a new run begins; None if there is none, or if it is
    not known yet (see `copy_late`). Raises SpecError."""
    if not spec.checkpoint.resume_from:
        return None
    run = _origin(spec, workspace)
    if spec.checkpoint.number is None:
        return None if restoring.unsaved_sentence(run) else _newest(run)
    usable = Checkpoint.objects.filter(run=run, state__in=USABLE)
    chosen = usable.filter(number=spec.checkpoint.number).first()
    if chosen is None:
        numbers = ", ".join(map(str, usable.values_list("number", flat=True))) or "none"
        sentence = f"run {run.number} keeps no checkpoint {spec.checkpoint.number}; it has: {numbers}"
        raise SpecError("checkpoint.number", _with_removal(sentence, run))
    restoring.check_readable(chosen)
    return chosen


def copy_to(run: Run, source: Checkpoint) -> None:
    """Gives the run a copy of the checkpoint, which stays when the other run is deleted. The files are stored
    once, also in a datastore. A person has chosen it: it counts as complete. Raises SpecError if it was
    removed meanwhile."""
    if not Checkpoint.objects.filter(pk=source.pk, state__in=USABLE).exists():
        raise SpecError("checkpoint.resume_from", f"{source} of run {source.run.number} was just removed")
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
        datastore=source.datastore,
        store_path=source.store_path,
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
    StoredCheckpointFile.objects.bulk_create(
        StoredCheckpointFile(
            checkpoint=copy,
            node_rank=file.node_rank,
            path=file.path,
            key=file.key,
            size_bytes=file.size_bytes,
            digest=file.digest,
        )
        for file in source.stored_files.all()
    )


def late_sentence(run: Run, spec: RunSpec) -> str:
    """Returns why a queued run waits for what the run saves from which it goes on; "" if it need not."""
    if not _is_late(run, spec):
        return ""
    origin = _find_origin(spec, run.workspace)
    return restoring.unsaved_sentence(origin) if origin is not None else ""


def copy_late(run: Run, spec: RunSpec) -> None:
    """Gives a run its checkpoint that could not have it when it was submitted. Raises SpecError."""
    if _is_late(run, spec):
        copy_to(run, _newest(_origin(spec, run.workspace)))


def _is_late(run: Run, spec: RunSpec) -> bool:
    return bool(spec.checkpoint.resume_from) and run.attempt == 0 and not run.checkpoints.exists()


def _find_origin(spec: RunSpec, workspace: Workspace) -> Run | None:
    run: Run | None = Run.objects.for_workspace(workspace).filter(pk=spec.checkpoint.resume_from).first()
    return run


def _origin(spec: RunSpec, workspace: Workspace) -> Run:
    run = _find_origin(spec, workspace)
    if run is None:
        raise SpecError(
            "checkpoint.resume_from",
            "there is no run with this id in this workspace; leave the field out to begin anew",
        )
    return run


def _newest(run: Run) -> Checkpoint:
    checkpoint = restoring.newest(run)
    if checkpoint is None:
        sentence = f"run {run.number} has no complete checkpoint; leave the field out to begin anew"
        raise SpecError("checkpoint.resume_from", _with_removal(sentence, run))
    restoring.check_readable(checkpoint)
    return checkpoint


def _with_removal(sentence: str, run: Run) -> str:
    """Adds that a retention rule has removed the run's outputs, if it has."""
    removed = removal_sentence(run, DataKind.OUTPUTS)
    return f"{sentence}. {removed.rstrip('.')}" if removed else sentence
