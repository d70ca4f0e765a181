"""Tags of a run as clients know them: some are what TrainHub itself keeps of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from jobs import external, tags
from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow import keys, known
from tracking.mlflow.errors import INVALID, MISSING, MlflowError
from workspaces.models import Workspace

NAME = "mlflow.runName"
PARENT = "mlflow.parentRunId"
STATUS = "mlflow.client.status"
END_TIME = "mlflow.client.end_time"
LONGEST_NAME = 200
DEEPEST = 100


def put(caller: Caller, run: Run, told: Mapping[str, str]) -> None:
    """The name is the run's own, and not a tag that could differ from it; whom it is nested in is both."""
    if told.get(NAME):
        rename(run, told[NAME])
    if PARENT in told:
        _nest(caller, run, told[PARENT])
    tags.put(run, {key: value for key, value in told.items() if key != NAME})


def drop(run: Run, key: str) -> None:
    if key == NAME:
        raise MlflowError(INVALID, f"The tag {NAME} is the run's name, which it cannot be without; set it to another one.")
    if not tags.drop(run, [key]):
        raise MlflowError(MISSING, f"No tag with name: {key[:100]} in run with id {run.pk}")
    if key == PARENT and run.kind == external.KIND:
        Run.objects.filter(pk=run.pk).exclude(parent__kind="job").update(parent=None)
        known.forget(run.pk)


def rename(run: Run, name: str) -> None:
    Run.objects.filter(pk=run.pk).update(display_name=keys.at_most(name, LONGEST_NAME, "run_name"))


def parent_of(caller: Caller, told: Mapping[str, str]) -> Run | None:
    """What a new run is part of: for a job's own token always the job, however deep its script nests."""
    if caller.job is not None:
        return caller.job
    return _named(caller, told[PARENT]) if told.get(PARENT) else None


def _nest(caller: Caller, run: Run, parent_id: str) -> None:
    if run.kind != external.KIND or (caller.job is not None):
        return
    # Two that become part of each other at once would be a ring, in which whoever looks for all parts runs for ever.
    Workspace.objects.select_for_update().get(pk=caller.workspace.pk)
    parent = _named(caller, parent_id)
    above = [parent, *_above(parent)]
    if any(item.pk == run.pk for item in above):
        raise MlflowError(INVALID, f"{PARENT}: run {parent_id} is part of run {run.pk} itself; name another.")
    if len(above) > DEEPEST:
        raise MlflowError(INVALID, f"{PARENT}: run {parent_id} is {DEEPEST} runs deep already; name one further up.")
    Run.objects.filter(pk=run.pk).exclude(parent__kind="job").update(parent=parent)
    known.forget(run.pk)


def _named(caller: Caller, run_id: str) -> Run:
    found = Run.objects.filter(pk=run_id, workspace=caller.workspace).defer("spec", "preview").first()
    if found is None:
        raise MlflowError(MISSING, f"{PARENT}: Run with id={run_id[:100]} not found")
    return found


def _above(run: Run) -> Iterator[Run]:
    def chain(item: Run) -> Iterator[Run]:
        while item.parent is not None:
            item = item.parent
            yield item

    return islice(chain(run), DEEPEST)
