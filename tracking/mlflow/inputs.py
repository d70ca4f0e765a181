"""MLflow calls that log a run's inputs and outputs: data sets and models."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from jobs import tags
from jobs.models import Run, RunTag
from tracking.callers import Caller
from tracking.mlflow import lookup
from tracking.mlflow.logged_models import logged_model_calls
from tracking.mlflow.protocol import fields, key_rules, row_json
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, JsonObject
from tracking.mlflow.run_json import MODEL
from tracking.mlflow.runs import experiment_ids
from tracking.models import RunInput, RunOutput

MAX_INPUTS_PER_RUN = 5000
# MLflow's limits, except for the profile: MLflow allows 16 MB, but a request's body has at most 1 MiB here.
MAX_LENGTHS = {
    "name": 500,
    "digest": 36,
    "source_type": 64,
    "source": 65_535,
    "schema": 1_048_575,
    "profile": 1_048_575,
}
MAX_TAG_KEY_LENGTH, MAX_TAG_LENGTH = 255, 500
MAX_EXPERIMENTS = 20
MAX_SUMMARIES = 1000
CONTEXT = "mlflow.data.context"
HISTORY = "mlflow.log-model.history"
MAX_HISTORY_LENGTH = 1_000_000
HISTORY_FIELDS = ("artifact_path", "flavors", "utc_time_created", "run_id")


def log_inputs(caller: Caller, args: CallArgs) -> None:
    run = lookup.writable_run(caller, fields.required_text(args, "run_id"))
    rows = [_dataset_input(run, item, path) for path, item in fields.objects(args, "datasets")]
    for path, item in fields.objects(args, "models"):
        model = logged_model_calls.logged_model(
            caller, fields.required_text(item, "model_id", f"{path}.model_id")
        )
        rows.append(
            RunInput(run=run, name=model.pk, digest="", source_type=MODEL, source=f"models:/{model.pk}")
        )
    with transaction.atomic():
        _check_input_count(run, len(rows))
        # A data set that is logged again, such as by every rank, is left as it is.
        RunInput.objects.bulk_create(rows, ignore_conflicts=True)


def log_outputs(caller: Caller, args: CallArgs) -> None:
    run = lookup.writable_run(caller, fields.required_text(args, "run_id"))
    rows: dict[str, RunOutput] = {}
    for path, item in fields.objects(args, "models"):
        model = logged_model_calls.logged_model(
            caller, fields.required_text(item, "model_id", f"{path}.model_id")
        )
        # The last one of a model counts: PostgreSQL refuses to update a row twice in one statement.
        step = fields.integer(item, "step", f"{path}.step") or 0
        rows[model.pk] = RunOutput(run=run, model=model, step=step)
    RunOutput.objects.bulk_create(
        rows.values(), update_conflicts=True, unique_fields=["run", "model"], update_fields=["step"]
    )


def log_model(caller: Caller, args: CallArgs) -> None:
    """Appends to the history tag, in which clients before MLflow 3 log models."""
    run = lookup.writable_run(caller, fields.required_text(args, "run_id"))
    text = fields.required_text(args, "model_json")
    try:
        info = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MlflowError(
            INVALID, f"Malformed model info. \n {text[:200]} \n is not a valid JSON."
        ) from error
    missing = [name for name in HISTORY_FIELDS if not isinstance(info, dict) or name not in info]
    if missing:
        raise MlflowError(INVALID, f"Model json is missing mandatory fields: {missing}")
    with transaction.atomic():
        # The tag holds all entries; without the lock one of two concurrent calls would overwrite the other's
        # entry.
        Run.objects.select_for_update().filter(pk=run.pk).first()
        previous = RunTag.objects.filter(run=run, key=HISTORY).values_list("value", flat=True).first()
        history = json.dumps([*_parse_history(previous or ""), info])
        tags.set_tags(run, {HISTORY: key_rules.check_length(history, MAX_HISTORY_LENGTH, "model_json")})


def search_datasets(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns the distinct data sets that runs of these experiments have read."""
    experiments = experiment_ids(caller, fields.texts(args, "experiment_ids"))
    if not experiments:
        raise MlflowError(INVALID, "SearchDatasets request must specify at least one experiment_id.")
    if len(experiments) > MAX_EXPERIMENTS:
        sentence = (
            f"SearchDatasets request cannot specify more than {MAX_EXPERIMENTS} experiment_ids. "
            f"Received {len(experiments)}."
        )
        raise MlflowError(INVALID, sentence)
    rows = RunInput.objects.filter(
        run__workspace=caller.workspace, run__experiment__in=experiments, run__deleted_at=None
    ).exclude(source_type=MODEL)
    summaries: dict[tuple[str, ...], JsonObject] = {}
    default = lookup.default_key(caller)
    for experiment_id, name, digest, input_tags in rows.values_list(
        "run__experiment_id", "name", "digest", "tags"
    ).iterator():
        public = lookup.public_id(experiment_id, default)
        summary = {
            "experiment_id": public,
            "name": name,
            "digest": digest,
            "context": input_tags.get(CONTEXT),
        }
        summaries.setdefault(
            (str(experiment_id), name, digest, input_tags.get(CONTEXT, "")), row_json.without_empty(summary)
        )
        if len(summaries) >= MAX_SUMMARIES:
            break
    return row_json.without_empty({"dataset_summaries": list(summaries.values())})


def _parse_history(text: str) -> list[Any]:
    """Returns the entries of the history tag; [] if it is not a JSON list, since clients may set any text."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return entries if isinstance(entries, list) else []


def _dataset_input(run: Run, item: CallArgs, path: str) -> RunInput:
    dataset = item.get("dataset")
    if not isinstance(dataset, dict):
        raise fields.missing(f"{path}.dataset")
    inner = f"{path}.dataset."
    texts = {name: fields.text(dataset, name, inner + name) or "" for name in MAX_LENGTHS}
    values = {
        name: key_rules.check_length(texts[name], max_length, inner + name)
        for name, max_length in MAX_LENGTHS.items()
    }
    for name in ("name", "digest", "source_type", "source"):
        if not values[name]:
            raise fields.missing(inner + name)
    tags: dict[str, str] = {}
    for tag_path, tag in ((f"{path}.{at}", tag) for at, tag in fields.objects(item, "tags")):
        key = key_rules.check_length(
            fields.required_text(tag, "key", f"{tag_path}.key"), MAX_TAG_KEY_LENGTH, f"{tag_path}.key"
        )
        tags[key] = key_rules.check_length(
            fields.text(tag, "value", f"{tag_path}.value") or "", MAX_TAG_LENGTH, f"{tag_path}.value"
        )
    return RunInput(run=run, tags=tags, **values)


def _check_input_count(run: Run, new: int) -> None:
    count = RunInput.objects.filter(run=run).count()
    if count + new > MAX_INPUTS_PER_RUN:
        sentence = (
            f"datasets: a run may have {MAX_INPUTS_PER_RUN} inputs, and this one has {count}; log "
            "fewer, larger data sets."
        )
        raise MlflowError(INVALID, sentence)
