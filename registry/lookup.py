from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from registry.models import ModelVersion, RegisteredModel
from workspaces.models import Workspace


def models_of(workspace: Workspace) -> QuerySet[RegisteredModel]:
    """The workspace's models with their versions, files and aliases at hand, newest version first."""
    versions = ModelVersion.objects.select_related("run", "created_by").prefetch_related("files", "aliases")
    models = RegisteredModel.objects.filter(workspace=workspace)
    return models.prefetch_related(Prefetch("versions", versions.order_by("-number")), "aliases__version")


def version_of(workspace: Workspace, name: str, which: str) -> ModelVersion | None:
    """`which`: a number, or an alias."""
    versions = ModelVersion.objects.select_related("model").filter(model__workspace=workspace, model__name=name)
    if which.isdecimal():
        return versions.filter(number=int(which)).first() if len(which) < 10 else None
    return versions.filter(aliases__name=which).first()
