"""The histograms of one key of a run, from which the page draws them."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse

from jobs.views.lanes import requested_attempt
from jobs.views.run_lookup import run_numbered
from tracking.media import histograms
from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.VIEWER)
def histogram_data(request: WorkspaceRequest, number: int) -> HttpResponse:
    """Returns `{"steps": [{"step", "low", "high", "counts"}, …]}` of the parameter `key`; without such a key
    the list is empty."""
    run = run_numbered(request.principal, number)
    attempt = requested_attempt(run, request.GET.get("attempt", ""))
    # No text of a database contains it.
    key = request.GET.get("key", "").replace("\0", "")[:250]
    return JsonResponse({"steps": histograms.steps_of(run, attempt, key)})
