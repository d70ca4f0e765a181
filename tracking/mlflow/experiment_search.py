"""Experiments by name, times and tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobs.models import Experiment
from tracking.callers import Caller
from tracking.mlflow import lookup
from tracking.mlflow.protocol import fields, page_tokens, row_json
from tracking.mlflow.protocol.conditions import Condition, Grammar, Is, Order, ordered
from tracking.mlflow.protocol.http import Asked

VIEWS = ("ACTIVE_ONLY", "DELETED_ONLY", "ALL")
MOST_AT_ONCE = 50_000
ATTRIBUTES = {
    "name": Is.TEXT,
    "experiment_id": Is.TEXT,
    "creation_time": Is.NUMBER,
    "last_update_time": Is.NUMBER,
}
GRAMMAR = Grammar(ATTRIBUTES, ATTRIBUTES)
NEWEST_FIRST = Order("creation_time", True)
_VALUES: dict[str, Callable[[Experiment], Any]] = {
    "name": lambda row: row.name,
    "experiment_id": row_json.experiment_id,
    "creation_time": lambda row: row_json.ms(row.created_at),
    "last_update_time": lambda row: row_json.ms(row.updated_at),
}


def search(caller: Caller, asked: Asked) -> dict[str, Any]:
    """The newest first, unless another order is asked for."""
    view = fields.choice(asked, "view_type", VIEWS) or VIEWS[0]
    most, skip = fields.most(asked, 1000, MOST_AT_ONCE), page_tokens.start(asked)
    conditions = GRAMMAR.conditions(fields.text(asked, "filter") or "")
    orders = GRAMMAR.ordered_by(fields.texts(asked, "order_by")) or [NEWEST_FIRST]
    rows = list(Experiment.objects.filter(workspace=caller.workspace))
    if not any(row.name == lookup.DEFAULT_NAME for row in rows):
        rows.append(lookup.default(caller))
    if view != "ALL":
        rows = [row for row in rows if (row.deleted_at is None) is (view == "ACTIVE_ONLY")]
    found = [row for row in rows if all(condition.holds(_told(row, condition)) for condition in conditions)]
    keys = [(_sort_key(order.key), order.descends) for order in orders]
    page = ordered(found, [*keys, (lambda row: row.pk or 0, True)])[skip : skip + most]
    told = {"experiments": [row_json.experiment(row) for row in page]}
    return row_json.full(
        told | ({"next_page_token": page_tokens.token(skip + most)} if skip + most < len(found) else {})
    )


def _told(row: Experiment, condition: Condition) -> Any:
    return row.tags.get(condition.key) if condition.entity == "tags" else _VALUES[condition.key](row)


def _sort_key(key: str) -> Callable[[Experiment], Any]:
    """Ids are numbers, though they are told as text."""
    return (lambda row: int(row_json.experiment_id(row))) if key == "experiment_id" else _VALUES[key]
