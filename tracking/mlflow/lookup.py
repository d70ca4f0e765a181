"""Experiments and runs by their ids, as far as whoever calls may see or change them."""

from __future__ import annotations

from django.db import transaction

from jobs import lifecycle, tags
from jobs.models import Experiment, Run
from tracking.callers import Caller
from tracking.mlflow.protocol import key_rules
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from trainhub_launch.spec import RunSpec
from workspaces.states import Role

DEFAULT_ID = "0"
"""What clients say that know of no experiment."""
DEFAULT_NAME = RunSpec.experiment
ASKED_TAG = "mlflow.client.experiment"
"""On a job's run: the experiment that its script set."""


def experiment(caller: Caller, key: str | None) -> Experiment:
    """Return an experiment to be read, deleted ones too. For a job, what it need not know is its own
    experiment.

    The default experiment may have no row yet: it is there from the beginning, but reading makes no rows.
    """
    if not key or key == DEFAULT_ID:
        return caller.job.experiment if caller.job else default(caller)
    row = None
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
    """Return an experiment that something is to be written to; the default one gets its row now."""
    row = experiment(caller, key)
    if row.pk is None:
        return Experiment.objects.get_or_create(workspace=caller.workspace, name=DEFAULT_NAME)[0]
    return row


def experiment_named(caller: Caller, name: str) -> Experiment:
    """A job gets its own for a name that is not there: its script may set whichever experiment it likes."""
    name = key_rules.experiment_name(name)
    row = Experiment.objects.filter(workspace=caller.workspace, name=name).first()
    if caller.job is not None:
        _note_asked(caller.job, "" if row is not None and row.pk == caller.job.experiment_id else name)
        row = row or caller.job.experiment
    if row is None and name.lower() == DEFAULT_NAME.lower():
        row = default(caller)
    if row is None:
        raise MlflowError(MISSING, f"Could not find experiment with name '{name}'")
    return row


def default(caller: Caller) -> Experiment:
    """Return the default experiment of the workspace, without a key where it has no row yet."""
    row = Experiment.objects.filter(workspace=caller.workspace, name=DEFAULT_NAME).first()
    created_at = caller.workspace.created_at
    return row or Experiment(
        workspace=caller.workspace, name=DEFAULT_NAME, created_at=created_at, updated_at=created_at
    )


def default_key(caller: Caller) -> int | None:
    """Return the key of the default experiment's row."""
    return default(caller).pk


def public_id(key: int | None, default: int | None) -> str:
    """Return an experiment's id as clients know it: they expect that of the default experiment to be 0."""
    return DEFAULT_ID if key is None or key == default else str(key)


def run(caller: Caller, run_id: str) -> Run:
    """Deleted ones too."""
    rows = Run.objects.filter(pk=run_id, workspace=caller.workspace)
    row = rows.select_related("experiment").defer("spec", "preview").first()
    if row is None:
        raise no_run(run_id)
    return row


def writable_run(caller: Caller, run_id: str) -> Run:
    """One that is not deleted, which the caller may change."""
    return permitted(caller, run(caller, run_id))


def permitted(caller: Caller, found: Run) -> Run:
    if found.workspace_id != caller.workspace.pk:
        raise no_run(found.pk)
    if not caller.may_write(found):
        raise MlflowError(DENIED, _why_not(caller, found))
    if found.deleted_at is not None:
        sentence = f"The run {found.pk} must be in the 'active' state. Current state is deleted."
        raise MlflowError(INVALID, sentence)
    return found


def no_run(run_id: str) -> MlflowError:
    return MlflowError(MISSING, f"Run with id={run_id[:100]} not found")


def _why_not(caller: Caller, found: Run) -> str:
    if caller.job is not None and caller.may(Role.CONTRIBUTOR):
        return (
            f"The token of run {caller.job.number} writes to that run and to what it has logged; run "
            f"{found.number} is another. "
            "Use an API token of your own."
        )
    return (
        f"This needs the role {Role.CONTRIBUTOR}; you are {caller.role} of {caller.workspace}. Ask one "
        "of its owners."
    )


def _note_asked(job: Run, name: str) -> None:
    """Journaled once for each name: every rank sets it. Empty: the job's own."""
    with transaction.atomic():
        Run.objects.select_for_update().filter(pk=job.pk).first()
        before = job.tags.filter(key=ASKED_TAG).values_list("value", flat=True).first() or ""
        if name == before:
            return
        if not name:
            tags.drop(job, [ASKED_TAG])
            return
        tags.put(job, {ASKED_TAG: name})
        message = (
            f"The script set the experiment {name!r}; the run stays in {job.experiment.name!r}, as it "
            "was submitted."
        )
        lifecycle.note(job.pk, message, attempt=job.attempt)
