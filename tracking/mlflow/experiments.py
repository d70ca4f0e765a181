"""MLflow calls that create, read, rename, tag, delete and restore experiments."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils import timezone

from jobs.errors import Conflict
from jobs.models import Experiment
from jobs.retention import deletion
from tracking.callers import Caller
from tracking.mlflow import lookup, run_cache
from tracking.mlflow.logging_calls import parse_tags
from tracking.mlflow.protocol import fields, key_rules, row_json
from tracking.mlflow.protocol.errors import DENIED, EXISTS, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from workspaces.models import User

MAX_TAGS = 1000


def create_experiment(caller: Caller, args: CallArgs) -> dict[str, str]:
    name = key_rules.experiment_name(fields.text(args, "name"))
    if fields.text(args, "artifact_location"):
        sentence = "artifact_location: TrainHub stores the files of its runs itself; leave the location out."
        raise MlflowError(INVALID, sentence)
    tags = parse_tags(fields.objects(args, "tags"), key_rules.MAX_EXPERIMENT_TAG_LENGTH)
    # `name` may be shortened already; the tag stores the name that the client sent.
    tags |= key_rules.full_name(str(args["name"]), key_rules.MAX_EXPERIMENT_TAG_LENGTH)
    _refuse_default_name(name)
    # The constraint decides and not a query before: another request may create the name in between.
    try:
        with transaction.atomic():
            experiment = Experiment.objects.create(workspace=caller.workspace, name=name, tags=tags)
    except IntegrityError as error:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.") from error
    return {"experiment_id": str(experiment.pk)}


def get_experiment(caller: Caller, args: CallArgs) -> JsonObject:
    return {
        "experiment": row_json.experiment_json(
            lookup.experiment(caller, fields.required_text(args, "experiment_id"))
        )
    }


def get_experiment_by_name(caller: Caller, args: CallArgs) -> JsonObject:
    return {
        "experiment": row_json.experiment_json(
            lookup.experiment_named(caller, fields.required_text(args, "experiment_name"))
        )
    }


def update_experiment(caller: Caller, args: CallArgs) -> None:
    experiment = _manageable_experiment(caller, args)
    name = key_rules.experiment_name(fields.required_text(args, "new_name"))
    if experiment.deleted_at is not None:
        raise MlflowError(INVALID, "Cannot rename a non-active experiment.")
    if name != experiment.name:
        _refuse_default_name(name)
    try:
        with transaction.atomic():
            tags = experiment.tags | key_rules.full_name(
                str(args["new_name"]), key_rules.MAX_EXPERIMENT_TAG_LENGTH
            )
            Experiment.objects.filter(pk=experiment.pk).update(
                name=name, tags=tags, updated_at=timezone.now()
            )
    except IntegrityError as error:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.") from error


def _refuse_default_name(name: str) -> None:
    # For clients the default experiment exists even while it has no row.
    if name.lower() == lookup.DEFAULT_NAME:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.")


def delete(caller: Caller, args: CallArgs) -> None:
    experiment = _manageable_experiment(caller, args)
    try:
        if not deletion.delete_experiment(experiment, acting_user(caller)):
            raise MlflowError(MISSING, f"No Experiment with id={experiment.pk} exists")
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        # All cached runs: those of the experiment were deleted with it.
        run_cache.forget_run()


def restore(caller: Caller, args: CallArgs) -> None:
    experiment = _manageable_experiment(caller, args)
    try:
        if not deletion.restore_experiment(experiment, acting_user(caller)):
            raise MlflowError(MISSING, f"No Experiment with id={experiment.pk} exists")
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        # All cached runs: those of the experiment were restored with it.
        run_cache.forget_run()


def set_experiment_tag(caller: Caller, args: CallArgs) -> None:
    experiment = _taggable_experiment(caller, args)
    key = key_rules.key(args)
    value = key_rules.check_length(
        fields.text(args, "value") or "", key_rules.MAX_EXPERIMENT_TAG_LENGTH, "value"
    )
    with transaction.atomic():
        current = _locked_active(experiment)
        if key not in current.tags and len(current.tags) >= MAX_TAGS:
            raise MlflowError(INVALID, f"tags: an experiment may have {MAX_TAGS} tags; delete one first.")
        _save_tags(current, current.tags | {key: value})


def delete_experiment_tag(caller: Caller, args: CallArgs) -> None:
    experiment = _taggable_experiment(caller, args)
    # Clients name a tag by its full key, which may be stored shortened.
    key = key_rules.shorten_key(fields.required_text(args, "key"), key_rules.MAX_KEY_LENGTH)
    with transaction.atomic():
        current = _locked_active(experiment)
        if key not in current.tags:
            raise MlflowError(MISSING, f"No tag with name: {key[:100]} in experiment with id {experiment.pk}")
        _save_tags(current, {name: value for name, value in current.tags.items() if name != key})


def check_active(experiment: Experiment) -> Experiment:
    if experiment.deleted_at is not None:
        sentence = f"The experiment {experiment.pk} must be in the 'active' state. Current state is deleted."
        raise MlflowError(INVALID, sentence)
    return experiment


def acting_user(caller: Caller) -> User:
    """Returns the person to record in the audit log. Raises MlflowError if the job's submitter was
    deleted."""
    if caller.user is None:
        raise MlflowError(
            DENIED, "The account that submitted this job was deleted; use an API token of your own."
        )
    return caller.user


def _manageable_experiment(caller: Caller, args: CallArgs) -> Experiment:
    """Returns the experiment to rename, delete or restore; a job's own token may do none of these."""
    if caller.job is not None:
        raise MlflowError(
            DENIED,
            "A job's own token does not rename, delete or restore experiments; use your own API token.",
        )
    return lookup.stored_experiment(caller, fields.required_text(args, "experiment_id"))


def _taggable_experiment(caller: Caller, args: CallArgs) -> Experiment:
    """Returns the experiment to tag; a job's own token may tag only its own experiment."""
    experiment = lookup.stored_experiment(caller, fields.required_text(args, "experiment_id"))
    if caller.job is not None and experiment.pk != caller.job.experiment_id:
        raise MlflowError(
            DENIED,
            f"The token of run {caller.job.number} tags its own experiment; use one of your own API tokens.",
        )
    return experiment


def _locked_active(experiment: Experiment) -> Experiment:
    """Returns the experiment's row, locked: all tags are one JSON field, and two clients may write it at
    once."""
    return check_active(Experiment.objects.select_for_update().get(pk=experiment.pk))


def _save_tags(current: Experiment, tags: dict[str, str]) -> None:
    Experiment.objects.filter(pk=current.pk).update(tags=tags, updated_at=timezone.now())
