"""A run by its number or id, inside the workspace of who asks."""

from __future__ import annotations

from django.http import Http404

from jobs.models import Run
from workspaces.access import Principal


def run_numbered(who: Principal, number: int) -> Run:
    found = (
        Run.objects.for_workspace(who.workspace)
        .filter(number=number)
        .select_related("experiment", "created_by")
        .first()
    )
    if found is None:
        raise Http404
    return found


def run_with_id(who: Principal, run_id: str) -> Run:
    found = Run.objects.for_workspace(who.workspace).filter(pk=run_id).first()
    if found is None:
        raise Http404
    return found
