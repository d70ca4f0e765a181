"""Ways to choose runs that pages, the API and the reaper share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from jobs.states import ACTIVE, RunState

if TYPE_CHECKING:
    from workspaces.models import Workspace


class RunQuerySet(models.QuerySet[Any]):
    def of(self, workspace: Workspace) -> RunQuerySet:
        """What the people of a workspace find: a deleted run is not there, for whoever does not ask for it by
        `ever_of`."""
        return self.ever_of(workspace).kept()

    def ever_of(self, workspace: Workspace) -> RunQuerySet:
        """Deleted ones too."""
        return self.filter(workspace=workspace)

    def kept(self) -> RunQuerySet:
        # The runs of a deleted experiment are marked themselves (jobs.retention.deletion): no join.
        return self.filter(deleted_at=None)

    def deleted(self) -> RunQuerySet:
        return self.exclude(deleted_at=None)

    def listed(self) -> RunQuerySet:
        """Neither deleted nor put away."""
        return self.filter(deleted_at=None, archived_at=None)

    def leading(self) -> RunQuerySet:
        """Without what a job's own processes logged: that is shown as part of the job."""
        return self.exclude(parent__kind="job")

    def queued(self) -> RunQuerySet:
        """The highest priority first, then first come, first served; a retry keeps its run's place."""
        return self.filter(state=RunState.QUEUED).order_by("-priority", "created_at", "number")

    def matching(self, *, state: str = "", experiment: str = "", text: str = "") -> RunQuerySet:
        """`state` is a state's name or `active`; `text` is found in the name or the experiment's name, or is
        the number."""
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
