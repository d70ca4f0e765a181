"""The part of the page of a dataset's version that names the models of the runs that learned from it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from registry.models import ModelVersion
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role

MAX_MODELS = 20
MAX_NUMBER = 2**31 - 1


@require_GET
@needs(Role.VIEWER)
def dataset_models(request: WorkspaceRequest, name: str, number: int) -> HttpResponse:
    versions = ModelVersion.objects.filter(
        model__workspace=request.principal.workspace,
        run__dataset_uses__version__dataset__name=name,
        run__dataset_uses__version__number=min(number, MAX_NUMBER),
    )
    context = {"versions": versions.select_related("model", "run").order_by("-created_at")[:MAX_MODELS]}
    return render(request, "registry/_dataset_models.html", context)
