"""Experiments and runs by id, with the caller's permissions checked."""

from __future__ import annotations

from django.db import transaction

from jobs import lifecycle, tags
from jobs.models import Experiment, Run
from tracking.callers import Caller
from tracking.mlflow.protocol import key_rules
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from trainhub_launch.spec import RunSpec
from workspaces.states import Role

# The experiment id that clients send when the user has not chosen one.
DEFAULT_ID = "0"
DEFAULT_NAME = RunSpec.experiment
ONLY_OWN = (
    "This token only logs, and reaches runs that its person has created; use one with more access for others."
)
# Tag on a job's run: the experiment that its script has set.
EXPERIMENT_TAG = "mlflow.client.experiment"


def experiment(caller: Caller, key: str | None) -> Experiment:
    """Returns an experiment for reading, deleted or not. Without a key: the job's own, or the default one.

    The default experiment exists from the start for clients, but reading creates no row: its pk may be None.
    """
    if not key or key == DEFAULT_ID:
        return caller.job.experiment if caller.job else default(caller)
    row = None
    # 18 digits always fit into a primary key of 64 bits.
    if key.isascii() and key.isdecimal() and len(key) <= 18:
        row = Experiment.objects.filter(workspace=caller.workspace, pk=int(key)).first()
    elif not key.isalnum():
        raise MlflowError(
            INVALID, f"Invalid experiment ID '{key[:100]}'. Experiment ID must be a valid integer."
        )
    if row is None:
        raise MlflowError(MISSING, f"No Experiment with id={key[:100]} exists")
    return row


def stored_experiment(caller: Caller, key: str | None) -> Experiment:
    """Returns an experiment for writing; creates the default experiment's row if needed."""
    row = experiment(caller, key)
    if row.pk is None:
        return Experiment.objects.get_or_create(workspace=caller.workspace, name=DEFAULT_NAME)[0]
    return row


def experiment_named(caller: Caller, name: str) -> Experiment:
    """Returns the experiment of that name. Raises MlflowError if there is none.

    For a job it returns the job's own experiment instead, and records the name: scripts set experiments by
    name, but a job's run stays where it was submitted.
    """
    name = key_rules.experiment_name(name)
    row = Experiment.objects.filter(workspace=caller.workspace, name=name).first()
    if caller.job is not None:
        _record_script_experiment(
            caller.job, "" if row is not None and row.pk == caller.job.experiment_id else name
        )
        row = row or caller.job.experiment
    # MLflow's own default experiment is `Default`, so clients may use either spelling.
    if row is None and name.lower() == DEFAULT_NAME.lower():
        row = default(caller)
    if row is None:
        raise MlflowError(MISSING, f"Could not find experiment with name '{name}'")
    return row


def default(caller: Caller) -> Experiment:
    """Returns the workspace's default experiment; unsaved, with pk None, if it has no row yet."""
    row = Experiment.objects.filter(workspace=caller.workspace, name=DEFAULT_NAME).first()
    created_at = caller.workspace.created_at
    return row or Experiment(
        workspace=caller.workspace, name=DEFAULT_NAME, created_at=created_at, updated_at=created_at
    )


def default_key(caller: Caller) -> int | None:
    """Returns the primary key of the default experiment, or None if it has no row yet."""
    return default(caller).pk


def public_id(key: int | None, default: int | None) -> str:
    """Returns an experiment's id as clients know it: they expect 0 for the default experiment."""
    return DEFAULT_ID if key is None or key == default else str(key)


def run(caller: Caller, run_id: str) -> Run:
    """Returns the run, deleted or not. Raises MlflowError if the workspace has no such run."""
    rows = Run.objects.filter(pk=run_id, workspace=caller.workspace)
    row: Run | None = rows.select_related("experiment").defer("spec", "preview").first()
    if row is None:
        raise run_missing(run_id)
    return check_readable(caller, row)


def check_readable(caller: Caller, run: Run) -> Run:
    """Returns the run, which is one of the caller's workspace. Raises MlflowError for a token that only logs
    and a run of somebody else."""
    if not caller.may_read(run):
        raise MlflowError(DENIED, ONLY_OWN)
    return run


def check_model_readable(caller: Caller, run: Run | None) -> None:
    """Raises MlflowError for a token that only logs and a logged model of a run that is not its person's;
    `run` None: the model belongs to no run."""
    if caller.scope.only_logs and (run is None or not caller.may_read(run)):
        raise MlflowError(DENIED, ONLY_OWN)


def writable_run(caller: Caller, run_id: str) -> Run:
    """Returns a run that is not deleted and that the caller may change. Raises MlflowError."""
    return check_writable(caller, run(caller, run_id))


def check_writable(caller: Caller, run: Run) -> Run:
    # The run may come from the cache, which all workspaces share. The error must not reveal that it exists.
    if run.workspace_id != caller.workspace.pk:
        raise run_missing(run.pk)
    if not caller.may_write(run):
        raise MlflowError(DENIED, _denial(caller, run))
    if run.deleted_at is not None:
        sentence = f"The run {run.pk} must be in the 'active' state. Current state is deleted."
        raise MlflowError(INVALID, sentence)
    return run


def run_missing(run_id: str) -> MlflowError:
    return MlflowError(MISSING, f"Run with id={run_id[:100]} not found")


def _denial(caller: Caller, run: Run) -> str:
    if caller.may(Role.CONTRIBUTOR) and not caller.may_read(run):
        return ONLY_OWN
    if caller.job is not None and caller.may(Role.CONTRIBUTOR):
        return (
            f"The token of run {caller.job.number} writes to that run and to what it has logged; run "
            f"{run.number} is a different one. "
            "Use an API token of your own."
        )
    return (
        f"This needs the role {Role.CONTRIBUTOR}; you are {caller.role} of {caller.workspace}. Ask one "
        "of its owners."
    )


def _record_script_experiment(job: Run, name: str) -> None:
    """Stores the name in the run's tag and records one event per name, since every rank sets it. An empty
    name removes the tag."""
    with transaction.atomic():
        # All ranks set the experiment at about the same time; without the lock each would record the event.
        Run.objects.select_for_update().filter(pk=job.pk).first()
        before = job.tags.filter(key=EXPERIMENT_TAG).values_list("value", flat=True).first() or ""
        if name == before:
            return
        if not name:
            tags.delete_tags(job, [EXPERIMENT_TAG])
            return
        tags.set_tags(job, {EXPERIMENT_TAG: name})
        message = (
            f"The script set the experiment {name!r}; the run stays in {job.experiment.name!r}, where "
            "it was submitted."
        )
        lifecycle.record_event(job.pk, message, attempt=job.attempt)
