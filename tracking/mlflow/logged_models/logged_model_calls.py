"""MLflow 3's calls for logged models: entries with tags and params, whose files are artifacts of their
own."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils import timezone

from clusters.task_messages import send_task_soon
from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow import experiments, lookup
from tracking.mlflow.default_names import random_name
from tracking.mlflow.protocol import fields, key_rules, row_json
from tracking.mlflow.protocol.errors import DENIED, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from tracking.models import LoggedModel
from workspaces.states import Role
from workspaces.task_names import TaskName

READY = "LOGGED_MODEL_READY"
STATUSES = (
    "LOGGED_MODEL_STATUS_UNSPECIFIED",
    "LOGGED_MODEL_PENDING",
    "LOGGED_MODEL_READY",
    "LOGGED_MODEL_UPLOAD_FAILED",
)
MAX_TAGS = 1000
MAX_PARAMS = 10_000
_FORBIDDEN = re.compile(r"[/:.%\"']")
_NAME_RULE = "Model name must be a non-empty string and cannot contain the following characters: / : . % \" '"


def create_logged_model(caller: Caller, args: CallArgs) -> JsonObject:
    """Creates a logged model for the run `source_run_id`, or else for the calling job."""
    source = fields.text(args, "source_run_id") or ""
    run = _source_run(caller, source)
    key = fields.required_text(args, "experiment_id")
    # A model belongs to the experiment of its run, whichever one the client names.
    experiment = experiments.check_active(run.experiment if run else lookup.stored_experiment(caller, key))
    name = fields.text(args, "name") or random_name()
    if _FORBIDDEN.search(name):
        raise MlflowError(INVALID, f"Invalid model name ('{name[:100]}') provided. {_NAME_RULE}")
    model = LoggedModel.objects.create(
        experiment=experiment,
        run=run,
        name=key_rules.shorten_key(name, key_rules.MAX_NAME_LENGTH),
        # Stored only if the run does not exist yet; `run_tags.link_pending` sets `run` once it does.
        source_run_id=""
        if run is not None and run.pk == source
        else key_rules.check_length(source, 250, "source_run_id"),
        model_type=key_rules.check_length(fields.text(args, "model_type") or "", 250, "model_type"),
        tags=_merged_pairs(args, "tags", {}, MAX_TAGS) | key_rules.full_name(name),
        params=_merged_pairs(args, "params", {}, MAX_PARAMS),
    )
    return {"model": row_json.logged_model_json(model)}


def get_logged_model(caller: Caller, args: CallArgs) -> JsonObject:
    include_deleted = str(args.get("allow_deleted", "")).lower() == "true"
    return {
        "model": row_json.logged_model_json(
            logged_model(caller, str(args["model_id"]), include_deleted=include_deleted)
        )
    }


def finalize(caller: Caller, args: CallArgs) -> JsonObject:
    status = fields.choice(args, "status", STATUSES, first=0)
    if not status:
        raise fields.missing("status")
    with transaction.atomic():
        model = _locked_model(caller, args)
        model.status = status
        model.save(update_fields=["status", "updated_at"])
        if status == READY:
            send_task_soon(TaskName.FILL_VERSIONS, model.pk)
    return {"model": row_json.logged_model_json(model)}


def delete_logged_model(caller: Caller, args: CallArgs) -> None:
    with transaction.atomic():
        model = _locked_model(caller, args)
        model.deleted_at = timezone.now()
        model.save(update_fields=["deleted_at", "updated_at"])


def set_logged_model_tags(caller: Caller, args: CallArgs) -> None:
    with transaction.atomic():
        model = _locked_model(caller, args)
        model.tags = _merged_pairs(args, "tags", model.tags, MAX_TAGS)
        model.save(update_fields=["tags", "updated_at"])


def delete_logged_model_tag(caller: Caller, args: CallArgs) -> None:
    key = key_rules.shorten_key(str(args["key"]), key_rules.MAX_KEY_LENGTH)
    with transaction.atomic():
        model = _locked_model(caller, args)
        if key not in model.tags:
            raise MlflowError(MISSING, f"No tag with key {key[:100]!r} found for model with ID {model.pk!r}.")
        del model.tags[key]
        model.save(update_fields=["tags", "updated_at"])


def log_params(caller: Caller, args: CallArgs) -> None:
    with transaction.atomic():
        model = _locked_model(caller, args)
        model.params = _merged_pairs(args, "params", model.params, MAX_PARAMS)
        model.save(update_fields=["params", "updated_at"])


def logged_model(caller: Caller, model_id: str, *, include_deleted: bool = False) -> LoggedModel:
    rows = LoggedModel.objects.select_related("experiment", "run").filter(
        experiment__workspace=caller.workspace, pk=model_id
    )
    row = rows.first() if include_deleted else rows.filter(deleted_at=None).first()
    if row is None:
        raise MlflowError(MISSING, f"Logged model with ID '{model_id[:100]}' not found.")
    lookup.check_model_readable(caller, row.run)
    return row


def may_write(caller: Caller, model: LoggedModel) -> bool:
    """Returns whether the caller may change the model: a job those of its own runs, a contributor all."""
    if not caller.may(Role.CONTRIBUTOR):
        return False
    return caller.job is None or (model.run is not None and caller.may_write(model.run))


def _locked_model(caller: Caller, args: CallArgs) -> LoggedModel:
    model = logged_model(caller, str(args["model_id"]))
    if not may_write(caller, model):
        raise MlflowError(
            DENIED, f"The logged model {model.pk} belongs to another run; use an API token of a contributor."
        )
    # Tags, params and metrics are JSON fields that are written as a whole: without the lock, one of two
    # concurrent calls would lose its entries.
    return LoggedModel.objects.select_for_update().get(pk=model.pk)


def _source_run(caller: Caller, run_id: str) -> Run | None:
    """Returns the source run, which must be writable, or else the calling job. The id of a run that does not
    exist is stored as text."""
    if run_id and Run.objects.filter(pk=run_id, workspace=caller.workspace).exists():
        return lookup.writable_run(caller, run_id)
    return caller.job


def _merged_pairs(args: CallArgs, name: str, before: dict[str, str], limit: int) -> dict[str, str]:
    """Returns `before` with the pairs of the argument `name` added; the last value of a repeated key
    counts."""
    max_length = key_rules.MAX_TAG_LENGTH if name == "tags" else key_rules.MAX_PARAM_LENGTH
    pairs = {
        key_rules.shorten_key(
            fields.required_text(item, "key", f"{path}.key"), key_rules.MAX_KEY_LENGTH
        ): key_rules.value(item, max_length, f"{path}.value")
        for path, item in fields.objects(args, name)
    }
    if len(before | pairs) > limit:
        raise MlflowError(INVALID, f"{name}: a logged model may have {limit} of them; log fewer.")
    return before | pairs
