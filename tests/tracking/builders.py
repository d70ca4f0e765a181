"""Runs that were logged from elsewhere: what the tests of this floor start from."""

from __future__ import annotations

import itertools
from typing import Any

from django.utils import timezone

from jobs.models import Experiment, Run
from jobs.states import RunState
from tests.people import make_owner, make_workspace
from workspaces.models import Workspace

_numbers = itertools.count(1001)


def make_experiment(name: str = "birds", workspace: Workspace | None = None) -> Experiment:
    return Experiment.objects.get_or_create(workspace=workspace or make_workspace(), name=name)[0]


def logged_run(
    name: str = "night", *, experiment: str = "birds", workspace: Workspace | None = None, **fields: Any
) -> Run:
    """A run of kind external, running unless told otherwise."""
    workspace = workspace or make_workspace()
    defaults = {
        "number": next(_numbers),
        "kind": "external",
        "display_name": name,
        "state": RunState.RUNNING,
        "created_by": make_owner(),
        "started_at": timezone.now(),
    }
    return Run.objects.create(
        workspace=workspace, experiment=make_experiment(experiment, workspace), **defaults | fields
    )
