"""Search for logged models by attributes, tags, params and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tracking.callers import Caller
from tracking.mlflow.protocol import fields, page_tokens, row_json
from tracking.mlflow.protocol.conditions import (
    ATTRIBUTES_AND_TAGS,
    Condition,
    ConditionGrammar,
    ValueType,
    sort_rows,
)
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs
from tracking.mlflow.runs import experiment_ids
from tracking.models import LoggedModel
from trainhub_launch.json_types import JsonObject, JsonValue

MAX_RESULTS = 1000
ATTRIBUTES = dict.fromkeys(
    ("name", "model_id", "model_type", "status", "source_run_id"), ValueType.TEXT
) | dict.fromkeys(
    (
        "creation_timestamp",
        "creation_timestamp_ms",
        "last_updated_timestamp",
        "last_updated_timestamp_ms",
        "creation_time",
        "last_updated_time",
    ),
    ValueType.NUMBER,
)
GRAMMAR = ConditionGrammar(
    ATTRIBUTES, ATTRIBUTES, ATTRIBUTES_AND_TAGS | {"metrics": "metrics", "params": "params"}
)
_ATTRIBUTES: dict[str, Callable[[LoggedModel], object]] = {
    "name": lambda row: row.name,
    "model_id": lambda row: row.pk,
    "model_type": lambda row: row.model_type or None,
    "status": lambda row: row.status.removeprefix("LOGGED_MODEL_"),
    # Of a run that is not here, only its id is stored.
    "source_run_id": lambda row: row.run_id or row.source_run_id or None,
}


@dataclass(frozen=True)
class DatasetFilter:
    """Selects metrics by their data set; an empty `digest` matches any."""

    name: str
    digest: str = ""

    def matches(self, entry: Mapping[str, JsonValue]) -> bool:
        return entry.get("dataset_name") == self.name and self.digest in ("", entry.get("dataset_digest"))


def search_logged_models(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns a page of logged models in MLflow's JSON, the newest first unless `order_by` says otherwise."""
    experiments = experiment_ids(caller, fields.texts(args, "experiment_ids"))
    if not experiments:
        raise fields.missing("experiment_ids")
    conditions = GRAMMAR.parse_conditions(fields.text(args, "filter") or "")
    datasets = [_dataset_filter(item, path) for path, item in fields.objects(args, "datasets")]
    limit, skip = fields.max_results(args, 50, MAX_RESULTS), page_tokens.offset_of(args)
    keys = [_sort_key(item, path) for path, item in fields.objects(args, "order_by")]
    rows = LoggedModel.objects.filter(
        experiment__workspace=caller.workspace, experiment__in=experiments, deleted_at=None
    )
    rows = rows.select_related("experiment")
    for condition in conditions:
        # The database evaluates an equality on the name, which leaves few rows; the other conditions are
        # evaluated in memory.
        if (condition.entity, condition.key, condition.operator) == ("attributes", "name", "="):
            rows = rows.filter(name=condition.value)
    matches = [row for row in rows if _matches(row, conditions, datasets)]
    # Pages need a total order.
    last = [(lambda row: row.created_at, True), (lambda row: row.pk, False)]
    selected = sort_rows(matches, [*keys, *last])[skip : skip + limit]
    page: JsonObject = {"models": [row_json.logged_model_json(row) for row in selected]}
    return row_json.without_empty(
        page
        | (
            {"next_page_token": page_tokens.encode_offset(skip + limit)}
            if skip + limit < len(matches)
            else {}
        )
    )


def _matches(
    row: LoggedModel, conditions: Collection[Condition], datasets: Collection[DatasetFilter]
) -> bool:
    if datasets and not any(item.matches(entry) for item in datasets for entry in row.metrics):
        return False
    return all(
        any(condition.matches(value) for value in _values_of(row, condition, datasets))
        for condition in conditions
    )


def _values_of(row: LoggedModel, condition: Condition, datasets: Collection[DatasetFilter]) -> list[Any]:
    """Returns the model's values of the condition's key; a metric has one for each selected data set."""
    if condition.entity == "metrics":
        entries = [entry for entry in row.metrics if entry["key"] == condition.key]
        return [
            _number(entry)
            for entry in entries
            if not datasets or any(item.matches(entry) for item in datasets)
        ]
    if condition.entity == "attributes":
        return [_attribute(condition.key)(row)]
    return [(row.tags if condition.entity == "tags" else row.params).get(condition.key)]


def _attribute(key: str) -> Callable[[LoggedModel], object]:
    if key.startswith("creation_"):
        return lambda row: row_json.unix_ms(row.created_at)
    # The attributes that are left are the spellings of the update time.
    return _ATTRIBUTES.get(key) or (lambda row: row_json.unix_ms(row.updated_at))


def _sort_key(item: CallArgs, path: str) -> tuple[Callable[[LoggedModel], object], bool]:
    name = fields.required_text(item, "field_name", f"{path}.field_name")
    descending = item.get("ascending", True) is False
    entity, _, key = name.partition(".")
    if not key:
        if name not in ATTRIBUTES:
            raise MlflowError(INVALID, f"Invalid order by field name: {name[:100]}")
        return _attribute(name), descending
    if entity != "metrics":
        raise MlflowError(INVALID, f"Invalid order by field name: {name[:100]}. Only metrics are supported.")
    datasets = DatasetFilter(
        fields.text(item, "dataset_name") or "", fields.text(item, "dataset_digest") or ""
    )
    return lambda row: _last_value(row, key, datasets), descending


def _last_value(row: LoggedModel, key: str, datasets: DatasetFilter) -> float | None:
    entries = [
        entry
        for entry in row.metrics
        if entry["key"] == key and (not datasets.name or datasets.matches(entry))
    ]
    if not entries:
        return None
    value = _number(max(entries, key=lambda entry: (entry["timestamp"], entry["step"])))
    # NaN has no place in an order, so it sorts last like a missing metric.
    return None if math.isnan(value) else value


def _dataset_filter(item: CallArgs, path: str) -> DatasetFilter:
    digest = fields.text(item, "dataset_digest", f"{path}.dataset_digest")
    return DatasetFilter(fields.required_text(item, "dataset_name", f"{path}.dataset_name"), digest or "")


def _number(entry: Mapping[str, Any]) -> float:
    return float(entry["value"])
