"""What runs now, what is free, what came last."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from workspaces.access import WorkspaceRequest, needs
from workspaces.states import Role


@needs(Role.VIEWER)
def dashboard(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "jobs/dashboard.html", {})
