"""Search for experiments by name, times and tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.models import Experiment
from tracking.callers import Caller
from tracking.mlflow import lookup
from tracking.mlflow.protocol import fields, page_tokens, row_json
from tracking.mlflow.protocol.conditions import (
    AttributeOrder,
    Condition,
    ConditionGrammar,
    ValueType,
    sort_rows,
)
from tracking.mlflow.protocol.fields import CallArgs, JsonObject

VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
MAX_RESULTS = 50_000
ATTRIBUTES = {
    "name": ValueType.TEXT,
    "experiment_id": ValueType.TEXT,
    "creation_time": ValueType.NUMBER,
    "last_update_time": ValueType.NUMBER,
}
GRAMMAR = ConditionGrammar(ATTRIBUTES, ATTRIBUTES)
NEWEST_FIRST = AttributeOrder("creation_time", True)
_VALUES: dict[str, Callable[[Experiment], object]] = {
    "name": lambda row: row.name,
    "experiment_id": row_json.experiment_id,
    "creation_time": lambda row: row_json.unix_ms(row.created_at),
    "last_update_time": lambda row: row_json.unix_ms(row.updated_at),
}


def search_experiments(caller: Caller, args: CallArgs) -> JsonObject:
    """Returns a page of experiments in MLflow's JSON, the newest first unless `order_by` says otherwise."""
    view = fields.choice(args, "view_type", VIEWS) or VIEWS[0]
    limit, skip = fields.max_results(args, 1000, MAX_RESULTS), page_tokens.offset_of(args)
    conditions = GRAMMAR.parse_conditions(fields.text(args, "filter") or "")
    orders = GRAMMAR.parse_orders(fields.texts(args, "order_by")) or [NEWEST_FIRST]
    rows = list(Experiment.objects.filter(workspace=caller.workspace))
    # Clients expect the default experiment to exist from the start, although it may have no row yet.
    if not any(row.name == lookup.DEFAULT_NAME for row in rows):
        rows.append(lookup.default(caller))
    if view != "ALL":
        rows = [row for row in rows if (row.deleted_at is None) is (view == "ACTIVE_ONLY")]
    matches = [
        row for row in rows if all(condition.matches(_value_of(row, condition)) for condition in conditions)
    ]
    keys = [(_sort_key(order.key), order.descending) for order in orders]
    # The id decides between equal keys, because pages need a total order. Only the unsaved default has none.
    selected = sort_rows(matches, [*keys, (lambda row: row.pk or 0, True)])[skip : skip + limit]
    page = {"experiments": [row_json.experiment_json(row) for row in selected]}
    return row_json.without_empty(
        page
        | (
            {"next_page_token": page_tokens.encode_offset(skip + limit)}
            if skip + limit < len(matches)
            else {}
        )
    )


def _value_of(row: Experiment, condition: Condition) -> Any:
    return row.tags.get(condition.key) if condition.entity == "tags" else _VALUES[condition.key](row)


def _sort_key(key: str) -> Callable[[Experiment], object]:
    """Returns the function that gives an attribute's sort key; ids are text in JSON but sort as numbers."""
    return (lambda row: int(row_json.experiment_id(row))) if key == "experiment_id" else _VALUES[key]
