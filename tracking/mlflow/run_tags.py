"""A run's tags as MLflow's clients see them: some map to fields of the run, such as its name and parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from jobs import tags
from jobs.models import Run, RunTag
from jobs.states import RunKind
from tracking.callers import Caller
from tracking.mlflow import run_cache
from tracking.mlflow.protocol import key_rules
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.models import LoggedModel
from workspaces.models import Workspace

NAME = "mlflow.runName"
PARENT = "mlflow.parentRunId"
STATUS = "mlflow.client.status"
END_TIME = "mlflow.client.end_time"
MAX_DEPTH = 100


def put_run_tags(caller: Caller, run: Run, values: Mapping[str, str]) -> None:
    """Stores tags. The name is stored on the run only, the parent on the run and as a tag."""
    if values.get(NAME):
        rename_run(run, values[NAME])
    if PARENT in values:
        _nest(caller, run, values[PARENT])
    tags.set_tags(run, {key: value for key, value in values.items() if key != NAME})


def drop_run_tag(run: Run, key: str) -> None:
    if key == NAME:
        raise MlflowError(
            INVALID, f"The tag {NAME} is the run's name, and a run needs a name; set it to another one."
        )
    # Clients name a tag by its full key, which may be stored shortened.
    if not tags.delete_tags(run, [key_rules.shorten_key(key, key_rules.MAX_KEY_LENGTH)]):
        raise MlflowError(MISSING, f"No tag with name: {key[:100]} in run with id {run.pk}")
    if key == PARENT:
        # A run that a job's process has created stays below the job, whatever its tags say.
        Run.objects.filter(pk=run.pk).exclude(parent__kind=RunKind.JOB).update(parent=None)
        run_cache.forget_run(run.pk)


def rename_run(run: Run, name: str) -> None:
    """Sets the run's name; one that is too long is shortened, and stored in full as a tag."""
    Run.objects.filter(pk=run.pk).update(display_name=key_rules.shorten_key(name, key_rules.MAX_NAME_LENGTH))
    tags.set_tags(run, key_rules.full_name(name))


def parent_of(caller: Caller, values: Mapping[str, str]) -> Run | None:
    """Returns the parent of a new run: for a job's own token always the job, at every nesting depth.

    Returns None if the tag names a run that does not exist (yet): importers may copy children first.
    """
    if caller.job is not None:
        return caller.job
    return _run_or_none(caller, values[PARENT]) if values.get(PARENT) else None


def link_pending(run: Run) -> None:
    """Links runs and logged models that named this run before it was created: as their parent or source."""
    # `short` holds the start of the value; a run's id is short enough to be stored there completely.
    waiting = RunTag.objects.filter(experiment__workspace=run.workspace_id, key=PARENT, short=run.pk)
    # A run that names itself as its parent gets none.
    children = Run.objects.filter(pk__in=waiting.values("run"), kind=RunKind.EXTERNAL, parent=None).exclude(
        pk=run.pk
    )
    if children.update(parent=run):
        run_cache.forget_run()
    models = LoggedModel.objects.filter(
        experiment__workspace=run.workspace_id, run=None, source_run_id=run.pk
    )
    models.update(run=run, source_run_id="")


def _nest(caller: Caller, run: Run, parent_id: str) -> None:
    # Every run that a job's token creates stays below the job.
    if caller.job is not None:
        return
    # The lock serializes nesting: two runs that became each other's parent at the same time would form a
    # cycle, and a search for descendants would never end.
    Workspace.objects.select_for_update().get(pk=caller.workspace.pk)
    parent = _run_or_none(caller, parent_id)
    # A job is a part only of an external run, such as one that stands for a search.
    if run.kind == RunKind.JOB and parent is not None and parent.kind == RunKind.JOB:
        return
    if parent is None:
        Run.objects.filter(pk=run.pk).exclude(parent__kind=RunKind.JOB).update(parent=None)
        run_cache.forget_run(run.pk)
        return
    ancestors = [parent, *_ancestors(parent)]
    if any(item.pk == run.pk for item in ancestors):
        raise MlflowError(INVALID, f"{PARENT}: run {parent_id} is part of run {run.pk} itself; name another.")
    if len(ancestors) > MAX_DEPTH:
        raise MlflowError(
            INVALID, f"{PARENT}: run {parent_id} is {MAX_DEPTH} runs deep already; name one further up."
        )
    Run.objects.filter(pk=run.pk).exclude(parent__kind=RunKind.JOB).update(parent=parent)
    run_cache.forget_run(run.pk)


def _run_or_none(caller: Caller, run_id: str) -> Run | None:
    row: Run | None = (
        Run.objects.filter(pk=run_id, workspace=caller.workspace).defer("spec", "preview").first()
    )
    return row if row is None or caller.may_read(row) else None


def _ancestors(run: Run) -> Iterator[Run]:
    def chain(item: Run) -> Iterator[Run]:
        while item.parent is not None:
            item = item.parent
            yield item

    # The bound also ends the walk along a cycle.
    return islice(chain(run), MAX_DEPTH)
