"""The runs that have not ended, of a person or in a workspace (see workspaces.administration.active_work)."""

from __future__ import annotations

from jobs.models import Run
from jobs.querysets import RunQuerySet
from jobs.scheduling import run_actions
from jobs.states import FINAL, RunKind
from workspaces.models import User, Workspace


def count_of_person(user: User) -> int:
    return _active().filter(created_by=user).count()


def count_in_workspace(workspace: Workspace) -> int:
    return _active().filter(workspace=workspace).count()


def cancel_of_person(user: User, who: User) -> int:
    return sum(run_actions.cancel(run, who) for run in _active().filter(created_by=user).order_by("number"))


def _active() -> RunQuerySet:
    # Not external ones: their programs do not run here, and are refused with the tokens of their person.
    return Run.objects.not_deleted().filter(kind=RunKind.JOB).exclude(state__in=FINAL)
