"""Datastores in which checkpoints lie: where attempts write them, where they are read, and what nodes are to
remove there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from datastores.models import Datastore
from jobs.attempts import attempt_warnings
from jobs.checkpoints.states import HIDDEN, USABLE, CheckpointState
from jobs.models import Attempt, AttemptNode, Checkpoint, Run, StoredCheckpointFile
from jobs.stored_outputs.folders import find_writable_store, folder_in
from trainhub_launch.data.outputs import StoreFolder
from trainhub_launch.spec import RunSpec
from workspaces.models import Workspace

FIELD = "checkpoint.datastore"
# Named in one answer to a node.
MAX_SURPLUS = 100
GONE = (CheckpointState.TORN, *HIDDEN)


def find_checkpoint_store(spec: RunSpec, workspace: Workspace) -> Datastore | None:
    """Returns the datastore into which the checkpoints go; None = they go to the hub. Raises SpecError."""
    name = spec.checkpoint.datastore
    return find_writable_store(name, FIELD, workspace) if name else None


def attempt_columns(run: Run, spec: RunSpec) -> dict[str, Any]:
    """Returns the columns of a new attempt that say where its checkpoints go. Raises SpecError."""
    datastore = find_checkpoint_store(spec, run.workspace)
    if datastore is None:
        return {}
    # No other run ever writes there.
    below = "/".join(filter(None, [spec.checkpoint.datastore_path, run.pk, "checkpoints"]))
    return {"checkpoint_datastore": datastore, "checkpoint_path": datastore.path_of(below)}


def write_folder(attempt: Attempt) -> StoreFolder | None:
    """Returns where the nodes of the attempt write checkpoints; None = they send them to the hub."""
    if attempt.checkpoint_datastore is None:
        return None
    return folder_in(attempt.checkpoint_datastore, attempt.checkpoint_path)


def source_folder(checkpoint: Checkpoint) -> StoreFolder | None:
    """Returns where files of the checkpoint lie; None = all are on the hub, or the datastore is not there any
    more."""
    if not checkpoint.store_path or checkpoint.datastore is None:
        return None
    return folder_in(checkpoint.datastore, checkpoint.store_path)


def with_origins_store(spec: RunSpec, workspace: Workspace) -> RunSpec:
    """Returns the spec with the datastore of the run whose checkpoint it begins with, unless it names one:
    nodes that read checkpoints there are the ones that can write there, too."""
    if not spec.checkpoint.resume_from or spec.checkpoint.datastore:
        return spec
    origin = Run.objects.for_workspace(workspace).filter(pk=spec.checkpoint.resume_from).first()
    # Whether there is such a run, and whether it has checkpoints, the caller finds out, and says so. A spec
    # that an earlier version wrote may not be readable any more.
    kept = origin.spec.get("checkpoint", {}) if origin is not None else {}
    checkpoint = replace(
        spec.checkpoint,
        datastore=kept.get("datastore", ""),
        datastore_path=kept.get("datastore_path", ""),
    )
    return replace(spec, checkpoint=checkpoint)


def usable_files(checkpoint: Checkpoint, keys: Collection[str]) -> dict[str, tuple[int, str]]:
    """Returns key -> size and SHA-256 of those files in the store that other checkpoints of the run have, and
    that a new one may therefore have, too."""
    if not keys:
        return {}
    rows = _files_in(checkpoint.run_id, checkpoint.datastore_id, checkpoint.store_path)
    rows = rows.filter(key__in=keys, checkpoint__state__in=USABLE)
    return {key: (size, digest) for key, size, digest in rows.values_list("key", "size_bytes", "digest")}


def surplus(attempt: Attempt) -> dict[int, list[str]]:
    """Returns the numbers of checkpoints whose files a node of the attempt is to remove from the store, each
    with the keys of those files that stay because later checkpoints have them, too."""
    if attempt.checkpoint_datastore_id is None:
        return {}
    rows = Checkpoint.objects.filter(
        run_id=attempt.run_id,
        state__in=GONE,
        datastore=attempt.checkpoint_datastore_id,
        store_path=attempt.checkpoint_path,
    )
    result: dict[int, list[str]] = {}
    if not rows.exists():
        return result
    with transaction.atomic():
        # A delivery that has found a file there usable is over, or finds that it is not.
        Run.objects.select_for_update().get(pk=attempt.run_id)
        for number, state in rows.order_by("number").values_list("number", "state"):
            if len(result) == MAX_SURPLUS:
                break
            keys = _kept_keys(attempt, number)
            is_done = state == CheckpointState.SHARED and bool(keys)
            if not is_done and not _is_used_by_others(attempt, number):
                result[number] = keys
    return result


def note_removed(
    part: AttemptNode, numbers: Iterable[int], problem: str, partial: Iterable[int] = ()
) -> None:
    """Records that nothing of these checkpoints is in the store any more, and of those in `partial` nothing
    but what later ones have, too; `problem`: why that could not be done, "" if it was."""
    attempt = part.attempt
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=attempt.run_id)
        if problem:
            sentence = f"Checkpoints that are not kept any more stay in the datastore: {problem}"
            attempt_warnings.add(attempt, [sentence], actor=f"node {part.node.name}")
            return
        rows = Checkpoint.objects.filter(
            run_id=attempt.run_id, number__in=[*numbers], store_path=attempt.checkpoint_path
        )
        rows.filter(state=CheckpointState.TORN).update(store_path="")
        rows.filter(state__in=HIDDEN).delete()
        rows = Checkpoint.objects.filter(
            run_id=attempt.run_id, number__in=[*partial], store_path=attempt.checkpoint_path
        )
        rows.filter(state=CheckpointState.DISCARDED).update(state=CheckpointState.SHARED)


def _files_in(run_id: str, datastore_id: int | None, path: str) -> QuerySet[StoredCheckpointFile]:
    """Returns the files of the run's checkpoints that lie there."""
    return StoredCheckpointFile.objects.filter(
        checkpoint__run=run_id, checkpoint__datastore=datastore_id, checkpoint__store_path=path
    )


def _kept_keys(attempt: Attempt, number: int) -> list[str]:
    """Returns the files in the folder of that checkpoint which other checkpoints have that are kept."""
    rows = _files_in(attempt.run_id, attempt.checkpoint_datastore_id, attempt.checkpoint_path)
    rows = rows.filter(key__startswith=f"{number}/").exclude(checkpoint__state__in=GONE)
    return sorted(set(rows.values_list("key", flat=True)))


def _is_used_by_others(attempt: Attempt, number: int) -> bool:
    """Returns whether another run began with that checkpoint, and still has it."""
    copies = StoredCheckpointFile.objects.filter(
        checkpoint__datastore=attempt.checkpoint_datastore_id,
        checkpoint__store_path=attempt.checkpoint_path,
        key__startswith=f"{number}/",
    )
    return copies.exclude(checkpoint__run=attempt.run_id).exists()
