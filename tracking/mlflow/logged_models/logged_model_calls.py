"""Models as scripts log them (MLflow 3): an entry with tags and params; its files are artifacts of its
own."""

from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from django.utils import timezone

from jobs.models import Run
from jobs.task_messages import ask_soon
from tracking.callers import Caller
from tracking.mlflow import experiments, lookup
from tracking.mlflow.default_names import given_name
from tracking.mlflow.protocol import fields, key_rules, row_json
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.http import Asked
from tracking.models import LoggedModel
from workspaces.states import Role

READY = "LOGGED_MODEL_READY"
FILL_VERSIONS = "registry.tasks.fill_versions"
"""What the worker does for versions that were registered before the model had its files."""
STATUSES = (
    "LOGGED_MODEL_STATUS_UNSPECIFIED",
    "LOGGED_MODEL_PENDING",
    "LOGGED_MODEL_READY",
    "LOGGED_MODEL_UPLOAD_FAILED",
)
MOST_TAGS = 1000
MOST_PARAMS = 10_000
_WRONG = re.compile(r"[/:.%\"']")
_RULE = "Model name must be a non-empty string and cannot contain the following characters: / : . % \" '"
Told = dict[str, Any]


def create(caller: Caller, asked: Asked) -> Told:
    """Of the run that is named, else of the job whose process asks."""
    source = fields.text(asked, "source_run_id") or ""
    run = _source(caller, source)
    key = fields.words(asked, "experiment_id")
    experiment = experiments.check_active(run.experiment if run else lookup.stored_experiment(caller, key))
    name = fields.text(asked, "name") or given_name()
    if _WRONG.search(name):
        raise MlflowError(INVALID, f"Invalid model name ('{name[:100]}') provided. {_RULE}")
    made = LoggedModel.objects.create(
        experiment=experiment,
        run=run,
        name=key_rules.shortened(name, key_rules.LONGEST_NAME),
        source_run_id=""
        if run is not None and run.pk == source
        else key_rules.at_most(source, 250, "source_run_id"),
        model_type=key_rules.at_most(fields.text(asked, "model_type") or "", 250, "model_type"),
        tags=_pairs(asked, "tags", {}, MOST_TAGS) | key_rules.full_name(name),
        params=_pairs(asked, "params", {}, MOST_PARAMS),
    )
    return {"model": row_json.logged_model(made)}


def get(caller: Caller, asked: Asked) -> Told:
    deleted_too = str(asked.get("allow_deleted", "")).lower() == "true"
    return {"model": row_json.logged_model(found(caller, str(asked["model_id"]), deleted_too=deleted_too))}


def finalize(caller: Caller, asked: Asked) -> Told:
    status = fields.choice(asked, "status", STATUSES, first=0)
    if not status:
        raise fields.missing("status")
    with transaction.atomic():
        model = _locked(caller, asked)
        model.status = status
        model.save(update_fields=["status", "updated_at"])
        if status == READY:
            ask_soon(FILL_VERSIONS, model.pk)
    return {"model": row_json.logged_model(model)}


def delete(caller: Caller, asked: Asked) -> None:
    with transaction.atomic():
        model = _locked(caller, asked)
        model.deleted_at = timezone.now()
        model.save(update_fields=["deleted_at", "updated_at"])


def set_tags(caller: Caller, asked: Asked) -> None:
    with transaction.atomic():
        model = _locked(caller, asked)
        model.tags = _pairs(asked, "tags", model.tags, MOST_TAGS)
        model.save(update_fields=["tags", "updated_at"])


def delete_tag(caller: Caller, asked: Asked) -> None:
    key = key_rules.shortened(str(asked["key"]), key_rules.LONGEST_KEY)
    with transaction.atomic():
        model = _locked(caller, asked)
        if key not in model.tags:
            raise MlflowError(MISSING, f"No tag with key {key[:100]!r} found for model with ID {model.pk!r}.")
        del model.tags[key]
        model.save(update_fields=["tags", "updated_at"])


def log_params(caller: Caller, asked: Asked) -> None:
    with transaction.atomic():
        model = _locked(caller, asked)
        model.params = _pairs(asked, "params", model.params, MOST_PARAMS)
        model.save(update_fields=["params", "updated_at"])


def found(caller: Caller, model_id: str, *, deleted_too: bool = False) -> LoggedModel:
    rows = LoggedModel.objects.select_related("experiment").filter(
        experiment__workspace=caller.workspace, pk=model_id
    )
    row = rows.first() if deleted_too else rows.filter(deleted_at=None).first()
    if row is None:
        raise MlflowError(MISSING, f"Logged model with ID '{model_id[:100]}' not found.")
    return row


def may_write(caller: Caller, model: LoggedModel) -> bool:
    """A job changes the models of its own runs; a contributor all."""
    if not caller.may(Role.CONTRIBUTOR):
        return False
    return caller.job is None or (model.run is not None and caller.may_write(model.run))


def _locked(caller: Caller, asked: Asked) -> LoggedModel:
    model = found(caller, str(asked["model_id"]))
    if not may_write(caller, model):
        raise MlflowError(
            DENIED, f"The logged model {model.pk} is another run's; use an API token of a contributor."
        )
    return LoggedModel.objects.select_for_update().get(pk=model.pk)


def _source(caller: Caller, run_id: str) -> Run | None:
    """Return the run that is named, which must be writable; of one that is not here only its id is kept, as
    text."""
    if run_id and Run.objects.filter(pk=run_id, workspace=caller.workspace).exists():
        return lookup.writable_run(caller, run_id)
    return caller.job


def _pairs(asked: Asked, name: str, before: dict[str, str], most: int) -> dict[str, str]:
    """`before` and what is asked; of a repeated key the last value."""
    longest = key_rules.LONGEST_TAG if name == "tags" else key_rules.LONGEST_PARAM
    told = {
        key_rules.shortened(fields.words(item, "key", f"{path}.key"), key_rules.LONGEST_KEY): key_rules.value(
            item, longest, f"{path}.value"
        )
        for path, item in fields.objects(asked, name)
    }
    if len(before | told) > most:
        raise MlflowError(INVALID, f"{name}: a logged model may have {most} of them; log fewer.")
    return before | told
