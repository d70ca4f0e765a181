from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from registry.models import ModelFile, ModelVersion, ReferencedFile, RegisteredModel
from registry.stages import STAGES
from workspaces.models import Workspace

LATEST = "latest"


def models_of(workspace: Workspace) -> QuerySet[RegisteredModel]:
    """Returns the workspace's models with prefetched versions (newest first), files and aliases."""
    # A certificate lists every file of the version and of its source; no list of models needs that text.
    versions = ModelVersion.objects.select_related("run", "created_by", "parent__model").defer("certificate")
    versions = versions.prefetch_related("files", "referenced_files", "aliases").order_by("-number")
    models = RegisteredModel.objects.filter(workspace=workspace)
    return models.prefetch_related(Prefetch("versions", versions), "aliases__version")


def version_of(workspace: Workspace, name: str, which: str) -> ModelVersion | None:
    """Returns the version of model `name` with the number or alias `which`, or None."""
    versions = versions_of(workspace).filter(model__name=name)
    if which.isdecimal():
        # Nine digits fit into the column's 32 bits, and int() refuses texts of thousands of digits.
        return versions.filter(number=int(which)).first() if len(which) < 10 else None
    return versions.filter(aliases__name=which).first()


def version_named(workspace: Workspace, text: str) -> ModelVersion | None:
    """Returns the version that an address of MLflow's client names, or None: `name/3`, `name/latest`,
    `name/Production` (the newest in that stage) or `name@alias`."""
    name, slash, which = text.partition("/")
    if not slash:
        name, at, which = text.partition("@")
        # An alias of digits alone cannot exist (aliases.RESERVED), so `name@3` must not be read as version 3.
        return version_of(workspace, name, which) if at and not which.isdecimal() else None
    if which.isdecimal():
        return version_of(workspace, name, which)
    newest = versions_of(workspace).filter(model__name=name).order_by("-number")
    if which == LATEST:
        return newest.first()
    stage = STAGES.get(which.lower())
    return newest.filter(stage=stage).first() if stage else None


def versions_of(workspace: Workspace) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.select_related("model__workspace", "run", "logged_model").filter(
        model__workspace=workspace
    )


def find_model_file(version: ModelVersion, path: str) -> ModelFile | ReferencedFile | None:
    """Returns the version's file at that path, wherever it lies, or None."""
    on_hub = version.files.select_related("version").filter(path=path)
    referenced = version.referenced_files.select_related("version", "datastore").filter(path=path)
    return on_hub.first() or referenced.first()
