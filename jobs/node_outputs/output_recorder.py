"""The files that a node names as outputs of an attempt become rows of the run: only files that it may name,
under safe paths."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from django.utils import timezone

from jobs import outputs
from jobs.attempts import attempt_warnings, run_transitions
from jobs.models import Artifact, AttemptNode, Run
from jobs.node_outputs import senders
from trainhub_launch.report import AttemptFact, OutputFile
from workspaces.stored_files import blobs, paths

_OF_A_NODE = re.compile(r"node_(\d{1,9})/")


def record_outputs(run: Run, part: AttemptNode, fact: AttemptFact) -> bool:
    """A row for every output whose bytes are here; False when some are not, so that the node names them
    again.

    Of different files with one path that of the first node has it, whichever told first. What was logged
    under the same path since the ranks ended stays: a fact comes again. A file with a bad path is left out,
    and a warning on the run says so."""
    if not fact.outputs:
        return True
    at = (
        run_transitions.to_datetime(fact.phase_at.get("uploading", fact.phase_at.get(fact.phase)))
        or timezone.now()
    )
    named = _valid_outputs(part, fact)
    allowed = senders.allowed_hashes(part, run.workspace_id, (output.sha256 for output in named))
    rows = {row.path: row for row in Artifact.objects.filter(run=run, attempt=part.attempt.number)}
    is_complete = True
    for output in named:
        path = output.path
        existing = rows.get(path)
        if existing is not None and existing.sha256 != output.sha256:
            if (existing.node_rank or 0) > part.node_rank:
                _move_to_node_folder(existing)
                existing = None
            elif part.node_rank > 0:
                path = outputs.node_path(path, part.node_rank)
                existing = rows.get(path)
        if existing is not None and (existing.sha256 == output.sha256 or existing.created_at > at):
            continue
        # Whether it is stored does not matter to who may not name it: nobody learns by a hash what others
        # have stored.
        if output.sha256 not in allowed or not blobs.hold(output.sha256):
            is_complete = False
            continue
        size = blobs.path(output.sha256).stat().st_size
        rows[path] = outputs.put_output(
            run, part.attempt.number, path, output.sha256, size, node_rank=part.node_rank
        )
    return is_complete


def _valid_outputs(part: AttemptNode, fact: AttemptFact) -> list[OutputFile]:
    """The outputs with paths that may be stored; the others become warnings on the run."""
    valid: list[OutputFile] = []
    warnings: list[str] = []
    folders = {str(parent) for output in fact.outputs for parent in PurePosixPath(output.path).parents}
    for output in fact.outputs:
        wrong = _problem(part, output)
        if not wrong and output.path in folders:
            wrong = "another output needs a folder of that name; rename one"
        if wrong:
            warnings.append(f"{paths.shown(output.path)} is not among the outputs: {wrong}.")
        else:
            valid.append(output)
    attempt_warnings.add(part.attempt, warnings, actor=f"node {part.node.name}")
    return valid


def _problem(part: AttemptNode, output: OutputFile) -> str:
    wrong = paths.portable_problem(output.path)
    if wrong:
        return wrong
    if not blobs.SHA256.match(output.sha256):
        return "the node did not tell its SHA-256"
    other = _OF_A_NODE.match(output.path)
    if other is not None and _is_another_node(part, int(other[1])):
        return f"{other[0]} is where files of another node of the run are kept; write to another folder"
    return ""


def _is_another_node(part: AttemptNode, rank: int) -> bool:
    if rank in (0, part.node_rank):
        return False
    return AttemptNode.objects.filter(attempt_id=part.attempt_id, node_rank=rank).exists()


def _move_to_node_folder(row: Artifact) -> None:
    """Of a later node, which told before the one that now takes its path."""
    place = outputs.node_path(row.path, row.node_rank or 0)
    outputs.put_output(row.run, row.attempt, place, row.sha256, row.size_bytes, node_rank=row.node_rank)
