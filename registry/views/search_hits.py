"""The registered models that the search field and the command palette find."""

from __future__ import annotations

from django.urls import reverse

from jobs.views.search_hits import MAX_OF_A_KIND, Hit
from registry.models import RegisteredModel
from workspaces.access import WorkspaceRequest


def models(text: str, request: WorkspaceRequest) -> list[Hit]:
    registered = RegisteredModel.objects.filter(
        workspace=request.principal.workspace, name__icontains=text
    ).order_by("name")[:MAX_OF_A_KIND]
    return [
        Hit("cube", model.name, "model", reverse("model", args=[model.name]), "Models")
        for model in registered
    ]
