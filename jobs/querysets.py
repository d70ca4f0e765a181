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
        return self.filter(workspace=workspace)

    def queued(self) -> RunQuerySet:
        """The highest priority first, then first come, first served; a retry keeps its run's place."""
        return self.filter(state=RunState.QUEUED).order_by("-priority", "created_at", "number")

    def matching(self, *, state: str = "", experiment: str = "", text: str = "") -> RunQuerySet:
        """`state` is a state's name or `active`; `text` is found in the name or the experiment's name, or is the number."""
        found = self.filter(experiment__name=experiment) if experiment else self
        if state:
            found = found.filter(state__in=ACTIVE if state == "active" else (state,))
        if text:
            named = Q(display_name__icontains=text) | Q(experiment__name__icontains=text)
            number = text.removeprefix("#").removeprefix("run ").strip()
            found = found.filter(named | Q(number=int(number)) if number.isdecimal() and len(number) < 10 else named)
        return found
