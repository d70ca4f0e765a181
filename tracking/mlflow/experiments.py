"""Experiments: made, found, renamed, tagged, deleted and brought back."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from jobs.errors import Conflict
from jobs.models import Experiment
from jobs.retention import deletion
from tracking.callers import Caller
from tracking.mlflow import lookup, run_cache
from tracking.mlflow.logging_calls import pairs
from tracking.mlflow.protocol import fields, key_rules, row_json
from tracking.mlflow.protocol.errors import DENIED, EXISTS, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.http import Asked
from workspaces.models import User

MOST_TAGS = 1000


def create(caller: Caller, asked: Asked) -> dict[str, str]:
    name = key_rules.experiment_name(fields.text(asked, "name"))
    if fields.text(asked, "artifact_location"):
        sentence = "artifact_location: TrainHub keeps the files of its runs itself; leave the location out."
        raise MlflowError(INVALID, sentence)
    tags = pairs(fields.objects(asked, "tags"), key_rules.LONGEST_EXPERIMENT_TAG)
    tags |= key_rules.full_name(str(asked["name"]), key_rules.LONGEST_EXPERIMENT_TAG)
    if name.lower() == lookup.DEFAULT_NAME:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.")
    try:
        with transaction.atomic():
            made = Experiment.objects.create(workspace=caller.workspace, name=name, tags=tags)
    except IntegrityError as error:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.") from error
    return {"experiment_id": str(made.pk)}


def get(caller: Caller, asked: Asked) -> dict[str, Any]:
    return {
        "experiment": row_json.experiment(lookup.experiment(caller, fields.words(asked, "experiment_id")))
    }


def get_by_name(caller: Caller, asked: Asked) -> dict[str, Any]:
    return {
        "experiment": row_json.experiment(
            lookup.experiment_named(caller, fields.words(asked, "experiment_name"))
        )
    }


def update(caller: Caller, asked: Asked) -> None:
    found = _whole(caller, asked)
    name = key_rules.experiment_name(fields.words(asked, "new_name"))
    if found.deleted_at is not None:
        raise MlflowError(INVALID, "Cannot rename a non-active experiment.")
    try:
        with transaction.atomic():
            tags = found.tags | key_rules.full_name(str(asked["new_name"]), key_rules.LONGEST_EXPERIMENT_TAG)
            Experiment.objects.filter(pk=found.pk).update(name=name, tags=tags, updated_at=timezone.now())
    except IntegrityError as error:
        raise MlflowError(EXISTS, f"Experiment(name={name}) already exists.") from error


def delete(caller: Caller, asked: Asked) -> None:
    found = _whole(caller, asked)
    try:
        if not deletion.delete_experiment(found, person(caller)):
            raise MlflowError(MISSING, f"No Experiment with id={found.pk} exists")
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        run_cache.forget()


def restore(caller: Caller, asked: Asked) -> None:
    found = _whole(caller, asked)
    try:
        if not deletion.restore_experiment(found, person(caller)):
            raise MlflowError(MISSING, f"No Experiment with id={found.pk} exists")
    except Conflict as error:
        raise MlflowError(INVALID, str(error)) from error
    finally:
        run_cache.forget()


def set_tag(caller: Caller, asked: Asked) -> None:
    found = _own(caller, asked)
    key = key_rules.key(asked)
    value = key_rules.at_most(fields.text(asked, "value") or "", key_rules.LONGEST_EXPERIMENT_TAG, "value")
    with transaction.atomic():
        current = _active(found)
        if key not in current.tags and len(current.tags) >= MOST_TAGS:
            raise MlflowError(INVALID, f"tags: an experiment may have {MOST_TAGS} tags; delete one first.")
        _retag(current, current.tags | {key: value})


def delete_tag(caller: Caller, asked: Asked) -> None:
    found = _own(caller, asked)
    key = fields.words(asked, "key")
    with transaction.atomic():
        current = _active(found)
        if key not in current.tags:
            raise MlflowError(MISSING, f"No tag with name: {key[:100]} in experiment with id {found.pk}")
        _retag(current, {name: value for name, value in current.tags.items() if name != key})


def check_active(found: Experiment) -> Experiment:
    if found.deleted_at is not None:
        sentence = f"The experiment {found.pk} must be in the 'active' state. Current state is deleted."
        raise MlflowError(INVALID, sentence)
    return found


def person(caller: Caller) -> User:
    """Who deletes or brings back: the audit names them."""
    if caller.user is None:
        raise MlflowError(DENIED, "Whoever submitted this job is gone; use an API token of your own.")
    return caller.user


def _whole(caller: Caller, asked: Asked) -> Experiment:
    """An experiment that is to be changed as a whole, which is nothing for a job."""
    if caller.job is not None:
        raise MlflowError(
            DENIED, "A job's own token does not rename, delete or restore experiments; use one of yours."
        )
    return lookup.stored_experiment(caller, fields.words(asked, "experiment_id"))


def _own(caller: Caller, asked: Asked) -> Experiment:
    """A job tags the experiment that it is in."""
    found = lookup.stored_experiment(caller, fields.words(asked, "experiment_id"))
    if caller.job is not None and found.pk != caller.job.experiment_id:
        raise MlflowError(
            DENIED,
            f"The token of run {caller.job.number} tags its own experiment; use an API token of yours.",
        )
    return found


def _active(found: Experiment) -> Experiment:
    """Locked: tags are one field, which two may want to change."""
    return check_active(Experiment.objects.select_for_update().get(pk=found.pk))


def _retag(current: Experiment, tags: dict[str, str]) -> None:
    Experiment.objects.filter(pk=current.pk).update(tags=tags, updated_at=timezone.now())
