from __future__ import annotations

import hashlib

from jobs.models import Artifact, Experiment, Run
from tests.people import make_workspace
from workspaces.models import Workspace
from workspaces.stored_files.blob_writer import BlobWriter


def blob(content: bytes) -> str:
    with BlobWriter() as writer:
        writer.write(content)
        return writer.finish(hashlib.sha256(content).hexdigest())


def run_with(*paths: str, workspace: Workspace | None = None, attempt: int = 1, number: int = 41) -> Run:
    """A run whose outputs have these paths; each file holds its own path as bytes."""
    workspace = workspace or make_workspace()
    experiment, _ = Experiment.objects.get_or_create(workspace=workspace, name="digits")
    run = Run.objects.create(
        workspace=workspace,
        experiment=experiment,
        number=number,
        display_name="train digits",
        spec={},
        attempt=attempt,
    )
    for path in paths:
        add_output(run, path, attempt=attempt)
    return run


def add_output(run: Run, path: str, *, attempt: int = 1, content: bytes | None = None) -> Artifact:
    content = path.encode() if content is None else content
    return Artifact.objects.create(
        run=run, attempt=attempt, path=path, size_bytes=len(content), sha256=blob(content)
    )
