"""Logged models by attributes, tags, params and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tracking.callers import Caller
from tracking.mlflow.protocol import fields, page_tokens, row_json
from tracking.mlflow.protocol.conditions import ATTRIBUTES_AND_TAGS, Condition, Grammar, Is, ordered
from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.http import Asked
from tracking.mlflow.runs import experiment_ids
from tracking.models import LoggedModel

MOST_AT_ONCE = 1000
ATTRIBUTES = dict.fromkeys(
    ("name", "model_id", "model_type", "status", "source_run_id"), Is.TEXT
) | dict.fromkeys(
    (
        "creation_timestamp",
        "creation_timestamp_ms",
        "last_updated_timestamp",
        "last_updated_timestamp_ms",
        "creation_time",
        "last_updated_time",
    ),
    Is.NUMBER,
)
GRAMMAR = Grammar(ATTRIBUTES, ATTRIBUTES, ATTRIBUTES_AND_TAGS | {"metrics": "metrics", "params": "params"})
_ATTRIBUTES: dict[str, Callable[[LoggedModel], Any]] = {
    "name": lambda row: row.name,
    "model_id": lambda row: row.pk,
    "model_type": lambda row: row.model_type or None,
    "status": lambda row: row.status.removeprefix("LOGGED_MODEL_"),
    "source_run_id": lambda row: row.run_id,
}


@dataclass(frozen=True)
class DataSet:
    """`digest` empty: any."""

    name: str
    digest: str = ""

    def has(self, entry: Mapping[str, Any]) -> bool:
        return entry.get("dataset_name") == self.name and self.digest in ("", entry.get("dataset_digest"))


def search(caller: Caller, asked: Asked) -> dict[str, Any]:
    """The newest first, unless another order is asked for."""
    wanted = experiment_ids(caller, fields.texts(asked, "experiment_ids"))
    if not wanted:
        raise fields.missing("experiment_ids")
    conditions = GRAMMAR.conditions(fields.text(asked, "filter") or "")
    data = [_data_set(item, path) for path, item in fields.objects(asked, "datasets")]
    most, skip = fields.most(asked, 50, MOST_AT_ONCE), page_tokens.start(asked)
    keys = [_order(item, path) for path, item in fields.objects(asked, "order_by")]
    rows = LoggedModel.objects.filter(
        experiment__workspace=caller.workspace, experiment__in=wanted, deleted_at=None
    )
    rows = rows.select_related("experiment")
    for condition in conditions:
        if (condition.entity, condition.key, condition.operator) == ("attributes", "name", "="):
            rows = rows.filter(name=condition.value)
    found = [row for row in rows if _matches(row, conditions, data)]
    last = [(lambda row: row.created_at, True), (lambda row: row.pk, False)]
    page = ordered(found, [*keys, *last])[skip : skip + most]
    told: dict[str, Any] = {"models": [row_json.logged_model(row) for row in page]}
    return row_json.full(
        told | ({"next_page_token": page_tokens.token(skip + most)} if skip + most < len(found) else {})
    )


def _matches(row: LoggedModel, conditions: Collection[Condition], data: Collection[DataSet]) -> bool:
    if data and not any(item.has(entry) for item in data for entry in row.metrics):
        return False
    return all(any(condition.holds(told) for told in _told(row, condition, data)) for condition in conditions)


def _told(row: LoggedModel, condition: Condition, data: Collection[DataSet]) -> list[Any]:
    """What the model says of the condition's key; of a metric on each data set in question."""
    if condition.entity == "metrics":
        entries = [entry for entry in row.metrics if entry["key"] == condition.key]
        return [_real(entry) for entry in entries if not data or any(item.has(entry) for item in data)]
    if condition.entity == "attributes":
        return [_attribute(condition.key)(row)]
    return [(row.tags if condition.entity == "tags" else row.params).get(condition.key)]


def _attribute(key: str) -> Callable[[LoggedModel], Any]:
    if key.startswith("creation_"):
        return lambda row: row_json.ms(row.created_at)
    return _ATTRIBUTES.get(key) or (lambda row: row_json.ms(row.updated_at))


def _order(item: Asked, path: str) -> tuple[Callable[[LoggedModel], Any], bool]:
    name = fields.words(item, "field_name", f"{path}.field_name")
    descends = item.get("ascending", True) is False
    entity, _, key = name.partition(".")
    if not key:
        if name not in ATTRIBUTES:
            raise MlflowError(INVALID, f"Invalid order by field name: {name[:100]}")
        return _attribute(name), descends
    if entity != "metrics":
        raise MlflowError(INVALID, f"Invalid order by field name: {name[:100]}. Only metrics are supported.")
    data = DataSet(fields.text(item, "dataset_name") or "", fields.text(item, "dataset_digest") or "")
    return lambda row: _last(row, key, data), descends


def _last(row: LoggedModel, key: str, data: DataSet) -> float | None:
    entries = [entry for entry in row.metrics if entry["key"] == key and (not data.name or data.has(entry))]
    if not entries:
        return None
    value = _real(max(entries, key=lambda entry: (entry["timestamp"], entry["step"])))
    return None if math.isnan(value) else value


def _data_set(item: Asked, path: str) -> DataSet:
    digest = fields.text(item, "dataset_digest", f"{path}.dataset_digest")
    return DataSet(fields.words(item, "dataset_name", f"{path}.dataset_name"), digest or "")


def _real(entry: Mapping[str, Any]) -> float:
    return float(entry["value"])
