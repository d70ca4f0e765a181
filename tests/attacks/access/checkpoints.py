"""A checkpoint with which the attempt of a node begins, and a list of the files that it reads."""

from __future__ import annotations

from jobs.models import Artifact, Attempt, Checkpoint, CheckpointFile, Run


def checkpoints_of(run: Run, artifact: Artifact) -> dict[str, dict[str, object]]:
    """Lets the only attempt of the run begin with a checkpoint that is this file, and read a dataset whose
    list it is, too. Returns what fills the routes of nodes."""
    checkpoint = Checkpoint.objects.create(run=run, attempt=0, number=1, name="model.pt", state="complete")
    CheckpointFile.objects.create(
        checkpoint=checkpoint, node_rank=0, path="model.pt", size_bytes=1, sha256=artifact.sha256
    )
    downloads = {"birds": {"manifest": artifact.sha256}}
    Attempt.objects.filter(run=run).update(restores=checkpoint, downloads=downloads)
    part: dict[str, object] = {"run": run.pk, "attempt": 1}
    data: dict[str, dict[str, object]] = {"/api/v1/node/data/": {"manifest": artifact.sha256}}
    routes = ("/api/v1/node/manifests/", "/api/v1/node/stored-outputs/")
    return {"/api/v1/node/checkpoints/": {**part, "number": 1}, **dict.fromkeys(routes, part), **data}
