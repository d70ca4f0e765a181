"""Records the files that a node reports as outputs of an attempt: only files that it may name, with safe
paths."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from django.db.models import QuerySet
from django.utils import timezone

from jobs import outputs
from jobs.attempts import attempt_warnings, run_transitions
from jobs.models import Artifact, AttemptNode, Run
from jobs.transfer import senders
from trainhub_launch.report import AttemptFact, OutputFile
from trainhub_launch.states import Phase
from workspaces.database.compiled_queries import compiled
from workspaces.stored_files import blob_cache, blobs, paths

_OF_A_NODE = re.compile(r"node_(\d{1,9})/")


@compiled
def _recorded(run_id: str, attempt: int) -> QuerySet[Artifact]:
    return Artifact.objects.filter(run_id=run_id, attempt=attempt)


def record_outputs(run: Run, part: AttemptNode, fact: AttemptFact) -> bool:
    """Records every reported output whose bytes are stored, and removes those that the node had reported
    earlier and its script has removed since. Returns False if some are not stored yet, so that the node
    reports them again.

    If nodes have different files with the same path, the node of the lowest rank gets the path, in whatever
    order they report. A file that was logged under the path after the ranks ended is not replaced. Files with
    invalid paths are left out, with a warning on the run."""
    if not fact.outputs and fact.phase is not Phase.DONE:
        return True
    at = (
        run_transitions.to_datetime(fact.phase_at.get(Phase.UPLOADING, fact.phase_at.get(fact.phase)))
        or timezone.now()
    )
    named = _valid_outputs(part, fact)
    allowed = senders.allowed_hashes(part, run.workspace_id, (output.sha256 for output in named))
    rows = {row.path: row for row in _recorded(run.pk, part.attempt.number)}
    is_complete, kept = True, set[str]()
    for output in named:
        path = output.path
        existing = rows.get(path)
        if existing is not None and existing.sha256 != output.sha256:
            # The file of the node with the lower rank has the plain path, whichever was reported first, so
            # that the result does not depend on which node was faster.
            if (existing.node_rank or 0) > part.node_rank:
                _move_to_node_folder(existing)
                existing = None
            elif part.node_rank > 0 and existing.node_rank != part.node_rank:
                path = outputs.node_path(path, part.node_rank)
                existing = rows.get(path)
        if existing is not None and (
            existing.sha256 == output.sha256 or (existing.node_rank is None and existing.created_at > at)
        ):
            _share(existing, part)
            kept.add(path)
            continue
        # Whether it is stored does not matter to who may not name it: nobody learns by a hash what others
        # have stored.
        if output.sha256 not in allowed or not blobs.hold(output.sha256):
            is_complete = False
            continue
        # The size on the disk, not the one that was reported.
        size = blob_cache.size_of(output.sha256)
        rows[path] = outputs.put_output(
            run, part.attempt.number, path, output.sha256, size, node_rank=part.node_rank
        )
        kept.add(path)
    if is_complete and not fact.error:
        _delete_others(rows, part, kept)
    return is_complete


def _share(row: Artifact, part: AttemptNode) -> None:
    """Notes that the node has the same file as another one, which may remove its own."""
    if (row.node_rank or 0) > part.node_rank:
        Artifact.objects.filter(pk=row.pk).update(node_rank=part.node_rank)


def _delete_others(rows: dict[str, Artifact], part: AttemptNode, kept: set[str]) -> None:
    """Deletes the node's outputs that it does not have any more. Only a report without an error names all
    that it has: one whose upload failed names those before the failure, or none."""
    others = [row.pk for path, row in rows.items() if row.node_rank == part.node_rank and path not in kept]
    if others:
        Artifact.objects.filter(pk__in=others).delete()


def _valid_outputs(part: AttemptNode, fact: AttemptFact) -> list[OutputFile]:
    """Returns the outputs whose paths may be stored; adds a warning to the attempt for each of the others."""
    valid: list[OutputFile] = []
    warnings: list[str] = []
    # "a" and "a/b" cannot both be files, because they could not be downloaded into one folder.
    folders = {str(parent) for output in fact.outputs for parent in PurePosixPath(output.path).parents}
    for output in fact.outputs:
        wrong = _problem(part, output)
        if not wrong and output.path in folders:
            wrong = "another output needs a folder of that name; rename one"
        if wrong:
            warnings.append(f"{paths.display_path(output.path)} is not among the outputs: {wrong}.")
        else:
            valid.append(output)
    attempt_warnings.add(part.attempt, warnings, actor=f"node {part.node.name}")
    return valid


def _problem(part: AttemptNode, output: OutputFile) -> str:
    if not blobs.SHA256.match(output.sha256):
        return "the node did not report its SHA-256"
    return path_problem(part, output.path)


def path_problem(part: AttemptNode, path: str) -> str:
    """Returns why a node may not name an output so, as a phrase, "" if it may."""
    wrong = paths.portable_problem(path)
    if wrong:
        return wrong
    other = _OF_A_NODE.match(path)
    if other is not None and _is_another_node(part, int(other[1])):
        return f"{other[0]} is where files of another node of the run are kept; write to another folder"
    return ""


def _is_another_node(part: AttemptNode, rank: int) -> bool:
    if rank in (0, part.node_rank):
        return False
    return AttemptNode.objects.filter(attempt_id=part.attempt_id, node_rank=rank).exists()


def _move_to_node_folder(row: Artifact) -> None:
    """Moves an output into its node's folder, because a node of lower rank has a file with the same path."""
    place = outputs.node_path(row.path, row.node_rank or 0)
    outputs.put_output(row.run, row.attempt, place, row.sha256, row.size_bytes, node_rank=row.node_rank)
