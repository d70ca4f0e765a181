"""Which runs a rule concerns now, and of which of these something is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.models import DataRemoval, Run
from jobs.querysets import RunQuerySet
from jobs.retention_rules.contents import has_data
from jobs.retention_rules.protections import protects
from jobs.retention_rules.rules import Rule
from jobs.states import FINAL, DataKind, RunState
from workspaces.models import Workspace


def concerned_runs(workspace: Workspace, kind: DataKind, rule: Rule, now: datetime) -> RunQuerySet:
    """Returns the runs that ended long enough ago for the rule, and have data of this kind. Deleted runs are
    left to the purge."""
    if rule.days is None:
        return Run.objects.none()
    until = now - timedelta(days=rule.days)
    states = (RunState.FAILED, RunState.CANCELED) if rule.only_unsuccessful else FINAL
    unfinished = DataRemoval.objects.filter(kind=kind, done_at=None)
    return (
        # What was logged elsewhere long ago and came here later counts from then on.
        Run.objects.for_workspace(workspace)
        .filter(has_data(kind), finished_at__lte=until, created_at__lte=until, state__in=states)
        .exclude(pk__in=unfinished.values("run"))
        .order_by("finished_at", "pk")
    )


def due_runs(workspace: Workspace, kind: DataKind, rule: Rule, now: datetime) -> RunQuerySet:
    """Returns those of the concerned runs that nothing protects, the oldest first."""
    return concerned_runs(workspace, kind, rule, now).exclude(protects(workspace))
