from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from registry.models import ModelVersion, RegisteredModel
from registry.stages import STAGES
from workspaces.models import Workspace

LATEST = "latest"


def models_of(workspace: Workspace) -> QuerySet[RegisteredModel]:
    """The workspace's models with their versions, files and aliases at hand, newest version first."""
    versions = ModelVersion.objects.select_related("run", "created_by", "parent__model").defer("certificate")
    versions = versions.prefetch_related("files", "aliases").order_by("-number")
    models = RegisteredModel.objects.filter(workspace=workspace)
    return models.prefetch_related(Prefetch("versions", versions), "aliases__version")


def version_of(workspace: Workspace, name: str, which: str) -> ModelVersion | None:
    """`which`: a number, or an alias."""
    versions = versions_of(workspace).filter(model__name=name)
    if which.isdecimal():
        return versions.filter(number=int(which)).first() if len(which) < 10 else None
    return versions.filter(aliases__name=which).first()


def version_named(workspace: Workspace, text: str) -> ModelVersion | None:
    """As MLflow names it: `name/3`, `name/latest`, `name/Production` (the newest of that stage) or
    `name@alias`."""
    name, slash, which = text.partition("/")
    if not slash:
        name, at, which = text.partition("@")
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
