"""Records the outputs that a node has written into a datastore."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from jobs import outputs
from jobs.attempts import attempt_warnings, output_recorder
from jobs.models import AttemptNode, OutputFolder, Run, StoredOutput
from jobs.stored_outputs.folders import find_output_folder, key_prefix
from trainhub_launch.report import OutputFile
from workspaces.stored_files import paths


class NoFolder(Exception):
    """The attempt writes its outputs into no datastore. The message is a sentence."""


def record_stored(part: AttemptNode, files: Sequence[OutputFile], removed: Sequence[str] = ()) -> None:
    """Records the files, each of which lies under its path in the node's folder; an earlier file of the path
    is replaced. One whose path cannot be stored is left out, with a warning on the run. Forgets those of the
    node's files whose paths are in `removed`.

    If nodes have different files with the same path, that of the node with the lowest rank gets it, in
    whatever order they report. Raises NoFolder."""
    with transaction.atomic():
        # As for reports: the nodes of a run are recorded one after the other.
        Run.objects.select_for_update().get(pk=part.attempt.run_id)
        folder = find_output_folder(part)
        if folder is None:
            raise NoFolder("The outputs of this attempt go to the hub.")
        warnings = []
        for file in files:
            wrong = output_recorder.path_problem(part, file.path)
            if wrong:
                warnings.append(f"{paths.display_path(file.path)} is not among the outputs: {wrong}.")
            else:
                _record(folder, part, file)
        keys = [f"{key_prefix(part)}{path}" for path in removed]
        folder.files.filter(node_rank=part.node_rank, key__in=keys).delete()
        attempt_warnings.add(part.attempt, warnings, actor=f"node {part.node.name}")


def _record(folder: OutputFolder, part: AttemptNode, file: OutputFile) -> None:
    rank, path = part.node_rank, file.path
    there = folder.files.filter(path=path).first()
    if there is not None and there.node_rank != rank:
        if there.sha256 == file.sha256:
            return
        if there.node_rank < rank:
            path = outputs.node_path(path, rank)
        else:
            _put(folder, outputs.node_path(path, there.node_rank), there)
    _put(
        folder,
        path,
        StoredOutput(
            key=f"{key_prefix(part)}{file.path}",
            size_bytes=file.size,
            digest=file.sha256,
            node_rank=rank,
        ),
    )


def _put(folder: OutputFolder, path: str, row: StoredOutput) -> None:
    """Stores the row under this path, in place of one that is there."""
    values = {name: getattr(row, name) for name in ("key", "size_bytes", "digest", "node_rank")}
    StoredOutput.objects.update_or_create(folder=folder, path=path, defaults=values)
