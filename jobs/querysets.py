"""Filters for runs that pages, the API and background tasks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connection, models
from django.db.models import Q

from jobs.states import ACTIVE, RunKind, RunState
from workspaces.database import text_lookups  # noqa: F401 - registers name_contains

if TYPE_CHECKING:
    from workspaces.models import Workspace

# A shorter text is compared, on PostgreSQL, with the names of so many newest runs of the workspace.
MIN_INDEXED_LENGTH, SHORT_TEXT_RUNS = 3, 10_000

# All that the list of experiments counts of runs. As run_state_counts has them all, it reads no run.
COUNT_COLUMNS = ("experiment", "state", "number")


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
        # PostgreSQL guesses that a parent's kind is never NULL after an outer join. Without the first
        # condition it expects no runs at all, and sorts all of them for the first few.
        return self.filter(Q(parent__isnull=True) | ~Q(parent__kind=RunKind.JOB))

    def queued(self) -> RunQuerySet:
        """Returns queued runs by priority, then in order of submission; a retry keeps its run's place."""
        return self.filter(state=RunState.QUEUED).order_by("-priority", "created_at", "number")

    def matching(
        self, workspace: Workspace, *, state: str = "", experiment: str = "", text: str = ""
    ) -> RunQuerySet:
        """Filters runs of the workspace. `state`: a state's name or `active`. `text`: part of the run's or
        the experiment's name, or the number. One query first for a text."""
        runs = self.filter(experiment__name=experiment) if experiment else self
        if state:
            runs = runs.filter(state__in=ACTIVE if state == "active" else (state,))
        if text:
            # By ids: a condition on another table would keep the database from using an index for each part.
            named = self._named(workspace, text) | Q(experiment__in=_experiments_named(workspace, text))
            number = text.removeprefix("#").removeprefix("run ").strip()
            runs = runs.filter(
                named | Q(number=int(number)) if number.isdecimal() and len(number) < 10 else named
            )
        return runs

    def _named(self, workspace: Workspace, text: str) -> Q:
        """Returns the condition on the runs' own names."""
        named = Q(display_name__name_contains=text)
        if len(text) < MIN_INDEXED_LENGTH and connection.vendor == "postgresql":
            # No index has parts of less than three characters. Rare ones would be looked for in all runs.
            newest = self.model.objects.filter(workspace=workspace).order_by("-created_at")
            oldest = newest.values_list("created_at", flat=True)[
                SHORT_TEXT_RUNS : SHORT_TEXT_RUNS + 1
            ].first()
            return named & Q(created_at__gt=oldest) if oldest else named
        return named


def _experiments_named(workspace: Workspace, text: str) -> list[int]:
    """Returns the experiments of the workspace with this in their name."""
    # The models import this module.
    rows = apps.get_model("jobs", "Experiment").objects.filter(workspace=workspace, name__icontains=text)
    return list(rows.values_list("pk", flat=True))
