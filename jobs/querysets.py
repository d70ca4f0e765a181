"""Filters for runs that pages, the API and background tasks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from jobs.states import ACTIVE, RunKind, RunState

if TYPE_CHECKING:
    from workspaces.models import Workspace


class RunQuerySet(models.QuerySet[Any]):
    def for_workspace(self, workspace: Workspace) -> RunQuerySet:
        """Returns the runs of a workspace without deleted ones."""
        return self.with_deleted_for_workspace(workspace).not_deleted()

    def with_deleted_for_workspace(self, workspace: Workspace) -> RunQuerySet:
        """Returns the runs of a workspace including deleted ones."""
        return self.filter(workspace=workspace)

    def not_deleted(self) -> RunQuerySet:
        # No join: deleting an experiment also sets `deleted_at` of its runs (jobs.retention.deletion).
        return self.filter(deleted_at=None)

    def deleted(self) -> RunQuerySet:
        return self.exclude(deleted_at=None)

    def listed(self) -> RunQuerySet:
        """Returns runs that are neither deleted nor archived."""
        return self.filter(deleted_at=None, archived_at=None)

    def leading(self) -> RunQuerySet:
        """Returns runs without those that a job's processes logged, which are shown as part of the job."""
        return self.exclude(parent__kind=RunKind.JOB)

    def queued(self) -> RunQuerySet:
        """Returns queued runs by priority, then in order of submission; a retry keeps its run's place."""
        return self.filter(state=RunState.QUEUED).order_by("-priority", "created_at", "number")

    def matching(self, *, state: str = "", experiment: str = "", text: str = "") -> RunQuerySet:
        """Filters runs. `state`: a state's name or `active`. `text`: part of the run's or the experiment's
        name, or the number."""
        runs = self.filter(experiment__name=experiment) if experiment else self
        if state:
            runs = runs.filter(state__in=ACTIVE if state == "active" else (state,))
        if text:
            named = Q(display_name__icontains=text) | Q(experiment__name__icontains=text)
            number = text.removeprefix("#").removeprefix("run ").strip()
            runs = runs.filter(
                named | Q(number=int(number)) if number.isdecimal() and len(number) < 10 else named
            )
        return runs
