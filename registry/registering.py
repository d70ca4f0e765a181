"""How an output of a run becomes a version of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from django.db import transaction
from django.db.models import F

from jobs.models import Artifact, Run
from registry.errors import RegistryError
from registry.models import ModelFile, ModelVersion, RegisteredModel
from workspaces import audit, blobs
from workspaces.models import User, Workspace

MODEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,126}[A-Za-z0-9._-])?\Z")
OUTPUTS = "outputs/"


def register(workspace: Workspace, name: str, run: Run, path: str, user: User, *, description: str = "") -> ModelVersion:
    """Make the next version of the model `name` (made too, if new) from a file or folder among the run's outputs.

    Raises RegistryError. Several at once get different numbers.
    """
    name = check_name(name)
    if run.workspace_id != workspace.pk:
        raise RegistryError("run", "is not a run of this workspace; choose one of its runs")
    source, chosen = _chosen(run, path)
    with transaction.atomic():
        model, _ = RegisteredModel.objects.get_or_create(workspace=workspace, name=name)
        # The UPDATE takes the row's lock before the number is read.
        RegisteredModel.objects.filter(pk=model.pk).update(last_version=F("last_version") + 1)
        model.refresh_from_db()
        version = ModelVersion.objects.create(
            model=model, number=model.last_version, run=run, source_path=source, description=description.strip(), created_by=user
        )
        ModelFile.objects.bulk_create(
            ModelFile(version=version, path=_below(source, item.path), size_bytes=item.size_bytes, sha256=item.sha256)
            for item in chosen
        )
        audit.record(user, "model.registered", f"{name} version {version.number}", workspace, run=run.pk, path=source)
    return version


def check_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise RegistryError("name", "is required: what shall the model be called?")
    if not MODEL_NAME.match(name):
        raise RegistryError("name", "use up to 128 letters, digits, space, '.', '_' and '-', starting with a letter or digit")
    return name


def outputs_of(run: Run) -> list[Artifact]:
    """The outputs of the run's latest attempt."""
    return list(Artifact.objects.filter(run=run, attempt=run.attempt).order_by("path"))


def choices_of(artifacts: Iterable[Artifact]) -> list[str]:
    """Everything that could be registered: each folder and each file."""
    paths = [PurePosixPath(artifact.path) for artifact in artifacts]
    folders = {f"{parent}/" for path in paths for parent in path.parents if parent.name}
    return sorted({*folders, *map(str, paths)})


def _chosen(run: Run, path: str) -> tuple[str, list[Artifact]]:
    wanted = path.strip().strip("/")
    if not wanted:
        raise RegistryError("path", "is required: name a file or a folder of the run's outputs")
    present = outputs_of(run)
    if not present:
        raise RegistryError("path", f"{run} has no outputs; what a script writes to outputs/ is saved when the run ends")
    for source in dict.fromkeys((wanted, wanted.removeprefix(OUTPUTS))):
        chosen = [item for item in present if item.path == source or item.path.startswith(f"{source}/")]
        if chosen:
            _check_bytes(chosen)
            return source, chosen
    offered = [*choices_of(present)[:5], *(["…"] if len(present) > 5 else [])]
    raise RegistryError("path", f"{wanted!r} is not among the outputs of {run}; there are: {', '.join(offered)}")


def _check_bytes(chosen: Iterable[Artifact]) -> None:
    for item in chosen:
        if not blobs.exists(item.sha256):
            raise RegistryError("path", f"the bytes of {item.path} are no longer on the hub; run the job again")


def _below(source: str, path: str) -> str:
    """A file keeps its own name; the files of a folder keep their paths inside it."""
    return PurePosixPath(path).name if path == source else path.removeprefix(f"{source}/")
