"""Metrics of logged models: the last point of each key and data set, stored on the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from jobs.models import Run
from tracking.callers import Caller
from tracking.mlflow.points import ModelPoint
from tracking.mlflow.protocol.errors import INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import JsonObject
from tracking.mlflow.protocol.row_json import json_number
from tracking.models import LoggedModel

MAX_METRICS_PER_MODEL = 2000


def put_model_metrics(caller: Caller, run: Run, points: Sequence[ModelPoint]) -> None:
    """Stores the points on their models; needs a transaction. Raises MlflowError."""
    # In sorted order, so that two calls that log to the same models cannot deadlock.
    for model_id in sorted({item.model_id for item in points}):
        models = LoggedModel.objects.select_for_update().filter(
            experiment__workspace=caller.workspace, deleted_at=None
        )
        model = models.filter(pk=model_id).first()
        if model is None:
            raise MlflowError(MISSING, f"Logged model with ID '{model_id[:100]}' not found.")
        entries = {_identity(entry): entry for entry in model.metrics}
        for item in points:
            if item.model_id == model_id:
                _keep_newest(entries, _entry(run, item))
        if len(entries) > MAX_METRICS_PER_MODEL:
            raise MlflowError(
                INVALID,
                f"metrics: a logged model may have {MAX_METRICS_PER_MODEL} different metrics; log fewer.",
            )
        LoggedModel.objects.filter(pk=model_id).update(
            metrics=list(entries.values()), updated_at=timezone.now()
        )


def _keep_newest(entries: dict[tuple[str, ...], JsonObject], entry: JsonObject) -> None:
    before = entries.get(_identity(entry))
    if before is None or _order(before) <= _order(entry):
        entries[_identity(entry)] = entry


def _order(entry: Mapping[str, Any]) -> tuple[int, int, float]:
    """Returns (time, step, value) for comparison, with NaN as 0."""
    value = float(entry["value"])
    return entry["timestamp"], entry["step"], 0.0 if math.isnan(value) else value


def _identity(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return entry["key"], entry.get("dataset_name", ""), entry.get("dataset_digest", "")


def _entry(run: Run, item: ModelPoint) -> JsonObject:
    point = item.point
    entry = {
        "key": point.key,
        "value": json_number(point.value),
        "timestamp": point.ms,
        "step": point.step,
        "run_id": run.pk,
        "model_id": item.model_id,
        "dataset_name": item.dataset_name,
        "dataset_digest": item.dataset_digest,
    }
    return {name: value for name, value in entry.items() if value != ""}
