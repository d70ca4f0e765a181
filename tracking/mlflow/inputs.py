"""What runs say they have read and made: data sets, and models."""

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
from tracking.mlflow.protocol.http import Asked
from tracking.mlflow.run_json import MODEL
from tracking.mlflow.runs import experiment_ids
from tracking.models import RunInput, RunOutput

MOST_OF_A_RUN = 5000
LONGEST = {
    "name": 500,
    "digest": 36,
    "source_type": 64,
    "source": 65_535,
    "schema": 1_048_575,
    "profile": 1_048_575,
}
LONGEST_TAG_KEY, LONGEST_TAG = 255, 500
MOST_EXPERIMENTS = 20
MOST_SUMMARIES = 1000
CONTEXT = "mlflow.data.context"
HISTORY = "mlflow.log-model.history"
LONGEST_HISTORY = 1_000_000
HISTORY_FIELDS = ("artifact_path", "flavors", "utc_time_created", "run_id")


def log_inputs(caller: Caller, asked: Asked) -> None:
    found = lookup.writable_run(caller, fields.words(asked, "run_id"))
    rows = [_data(found, item, path) for path, item in fields.objects(asked, "datasets")]
    for path, item in fields.objects(asked, "models"):
        model = logged_model_calls.found(caller, fields.words(item, "model_id", f"{path}.model_id"))
        rows.append(
            RunInput(run=found, name=model.pk, digest="", source_type=MODEL, source=f"models:/{model.pk}")
        )
    with transaction.atomic():
        _check_room(found, len(rows))
        RunInput.objects.bulk_create(rows, ignore_conflicts=True)


def log_outputs(caller: Caller, asked: Asked) -> None:
    found = lookup.writable_run(caller, fields.words(asked, "run_id"))
    rows = []
    for path, item in fields.objects(asked, "models"):
        model = logged_model_calls.found(caller, fields.words(item, "model_id", f"{path}.model_id"))
        rows.append(RunOutput(run=found, model=model, step=fields.whole(item, "step", f"{path}.step") or 0))
    RunOutput.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["run", "model"], update_fields=["step"]
    )


def log_model(caller: Caller, asked: Asked) -> None:
    """As clients before MLflow 3 tell of a model: one more entry of a tag."""
    found = lookup.writable_run(caller, fields.words(asked, "run_id"))
    text = fields.words(asked, "model_json")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MlflowError(
            INVALID, f"Malformed model info. \n {text[:200]} \n is not a valid JSON."
        ) from error
    lacking = [name for name in HISTORY_FIELDS if not isinstance(told, dict) or name not in told]
    if lacking:
        raise MlflowError(INVALID, f"Model json is missing mandatory fields: {lacking}")
    with transaction.atomic():
        Run.objects.select_for_update().filter(pk=found.pk).first()
        before = RunTag.objects.filter(run=found, key=HISTORY).values_list("value", flat=True).first()
        kept = json.dumps([*_history(before or ""), told])
        tags.put(found, {HISTORY: key_rules.at_most(kept, LONGEST_HISTORY, "model_json")})


def search_datasets(caller: Caller, asked: Asked) -> dict[str, Any]:
    """Each data set that runs of these experiments have read, once."""
    wanted = experiment_ids(caller, fields.texts(asked, "experiment_ids"))
    if not wanted:
        raise MlflowError(INVALID, "SearchDatasets request must specify at least one experiment_id.")
    if len(wanted) > MOST_EXPERIMENTS:
        sentence = (
            f"SearchDatasets request cannot specify more than {MOST_EXPERIMENTS} experiment_ids. "
            f"Received {len(wanted)}."
        )
        raise MlflowError(INVALID, sentence)
    rows = RunInput.objects.filter(
        run__workspace=caller.workspace, run__experiment__in=wanted, run__deleted_at=None
    ).exclude(source_type=MODEL)
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    default = lookup.default_key(caller)
    for experiment_id, name, digest, told in rows.values_list(
        "run__experiment_id", "name", "digest", "tags"
    ).iterator():
        public = lookup.public_id(experiment_id, default)
        summary = {"experiment_id": public, "name": name, "digest": digest, "context": told.get(CONTEXT)}
        found.setdefault((str(experiment_id), name, digest, told.get(CONTEXT, "")), row_json.full(summary))
        if len(found) >= MOST_SUMMARIES:
            break
    return row_json.full({"dataset_summaries": list(found.values())})


def _history(text: str) -> list[Any]:
    """Anybody may set the tag to anything: what is no list is begun anew."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return told if isinstance(told, list) else []


def _data(run: Run, item: Asked, path: str) -> RunInput:
    told = item.get("dataset")
    if not isinstance(told, dict):
        raise fields.missing(f"{path}.dataset")
    inner = f"{path}.dataset."
    given = {name: fields.text(told, name, inner + name) or "" for name in LONGEST}
    values = {name: key_rules.at_most(given[name], most, inner + name) for name, most in LONGEST.items()}
    for name in ("name", "digest", "source_type", "source"):
        if not values[name]:
            raise fields.missing(inner + name)
    found: dict[str, str] = {}
    for tag_path, tag in ((f"{path}.{at}", tag) for at, tag in fields.objects(item, "tags")):
        key = key_rules.at_most(
            fields.words(tag, "key", f"{tag_path}.key"), LONGEST_TAG_KEY, f"{tag_path}.key"
        )
        found[key] = key_rules.at_most(
            fields.text(tag, "value", f"{tag_path}.value") or "", LONGEST_TAG, f"{tag_path}.value"
        )
    return RunInput(run=run, tags=found, **values)


def _check_room(run: Run, fresh: int) -> None:
    held = RunInput.objects.filter(run=run).count()
    if held + fresh > MOST_OF_A_RUN:
        sentence = (
            f"datasets: a run may have {MOST_OF_A_RUN} inputs, and this one has {held}; log what "
            "they have in common."
        )
        raise MlflowError(INVALID, sentence)
