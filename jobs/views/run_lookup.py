"""Finds a run of the principal's workspace by number or id. Raises Http404 for runs of other workspaces."""

from __future__ import annotations

from django.http import Http404

from jobs.models import Run
from workspaces.access import Principal


def run_numbered(who: Principal, number: int) -> Run:
    run: Run | None = (
        Run.objects.for_workspace(who.workspace)
        .filter(number=number)
        .select_related("experiment", "created_by")
        .first()
    )
    if run is None:
        raise Http404
    return run


def run_with_id(who: Principal, run_id: str) -> Run:
    run: Run | None = Run.objects.for_workspace(who.workspace).filter(pk=run_id).first()
    if run is None:
        raise Http404
    return run
