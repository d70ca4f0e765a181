"""Database rows in MLflow's JSON format: ids are text, times are Unix milliseconds, empty fields are
omitted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobs.models import Experiment
from tracking.mlflow.lookup import DEFAULT_ID, DEFAULT_NAME
from tracking.mlflow.protocol.fields import JsonObject
from tracking.models import LoggedModel

ARTIFACTS = "mlflow-artifacts:"


def json_number(value: float) -> float | str:
    """Returns the value; a non-finite one, which JSON cannot represent, as MLflow's word for it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def unix_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def tag_list(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def lifecycle_stage(deleted_at: datetime | None) -> str:
    return "active" if deleted_at is None else "deleted"


def without_empty(values: Mapping[str, Any]) -> JsonObject:
    """Returns the fields that are not None, "", [] or {}."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def experiment_id(row: Experiment) -> str:
    """Returns the experiment's id as clients know it: "0" for the default experiment."""
    return DEFAULT_ID if row.name == DEFAULT_NAME else str(row.pk)


def experiment_json(row: Experiment) -> JsonObject:
    values = {
        "experiment_id": experiment_id(row),
        "name": row.name,
        "artifact_location": f"{ARTIFACTS}/{row.pk or DEFAULT_ID}",
        "lifecycle_stage": lifecycle_stage(row.deleted_at),
        "last_update_time": unix_ms(row.updated_at),
        "creation_time": unix_ms(row.created_at),
    }
    return values | ({"tags": tag_list(row.tags)} if row.tags else {})


def logged_model_json(row: LoggedModel) -> JsonObject:
    info = {
        "model_id": row.pk,
        "experiment_id": experiment_id(row.experiment),
        "name": row.name,
        "creation_timestamp_ms": unix_ms(row.created_at),
        "last_updated_timestamp_ms": unix_ms(row.updated_at),
        "artifact_uri": f"{ARTIFACTS}/{row.experiment_id}/models/{row.pk}/artifacts",
        "status": row.status,
        "model_type": row.model_type,
        "source_run_id": row.source_run_id or row.run_id,
        "tags": tag_list(row.tags),
    }
    return {
        "info": without_empty(info),
        "data": without_empty({"params": tag_list(row.params), "metrics": row.metrics}),
    }
