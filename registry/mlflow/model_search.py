"""Searches models and versions by a filter, in an order, page by page. Rows are filtered in memory, because
databases compare text differently; there are thousands of rows, not millions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from registry.lookup import versions_of
from registry.mlflow import row_json
from registry.mlflow.lookup import visible_models
from registry.models import ModelVersion, RegisteredModel
from tracking.callers import Caller
from tracking.mlflow.protocol.conditions import (
    AttributeOrder,
    Condition,
    ConditionGrammar,
    ValueType,
    sort_rows,
)
from tracking.mlflow.protocol.fields import CallArgs, max_results, text, texts
from tracking.mlflow.protocol.page_tokens import encode_offset, offset_of
from trainhub_launch.json_types import JsonObject

MODELS = ConditionGrammar(
    {"name": ValueType.TEXT}, ("name", "creation_timestamp", "last_updated_timestamp", "timestamp")
)
VERSIONS = ConditionGrammar(
    {
        "name": ValueType.TEXT,
        "version_number": ValueType.WHOLE,
        "run_id": ValueType.TEXT,
        "source_path": ValueType.TEXT,
    },
    ("name", "version_number", "creation_timestamp", "last_updated_timestamp"),
)
NEWEST_FIRST = AttributeOrder("last_updated_timestamp", True)
PROMPT = "mlflow.prompt.is_prompt"
NARROWED = {"name": "model__name", "run_id": "run_id", "version_number": "number"}
Row = dict[str, Any]


def models(who: Caller, args: CallArgs) -> JsonObject:
    conditions, orders = _read(args, MODELS)
    rows: list[Row] = [
        {
            "pk": pk,
            "name": name,
            "tags": tags,
            "creation_timestamp": created,
            "last_updated_timestamp": changed,
            "timestamp": changed,
        }
        for pk, name, tags, created, changed in RegisteredModel.objects.filter(workspace=who.workspace)
        .order_by("name")
        .values_list("pk", "name", "tags", "created_at", "updated_at")
    ]
    page, token = _page(args, _ordered(_matching(rows, conditions), orders), 100, 1000)
    # Only the page's rows are read whole; one of them may have been deleted since the first query.
    rows_by_id = visible_models(who).in_bulk(page)
    return {
        "registered_models": row_json.models([rows_by_id[pk] for pk in page if pk in rows_by_id]),
        **token,
    }


def versions(who: Caller, args: CallArgs) -> JsonObject:
    conditions, orders = _read(args, VERSIONS)
    # Equality narrows the query where the database compares as `matches` does; all conditions are checked
    # below.
    narrowed = {
        NARROWED[item.key]: item.value
        for item in conditions
        if item.entity == "attributes" and item.operator == "=" and item.key in NARROWED
    }
    rows: list[Row] = [
        {
            "pk": pk,
            "name": name,
            "version_number": number,
            "run_id": run or "",
            "source_path": source,
            "tags": tags,
            "creation_timestamp": created,
            "last_updated_timestamp": changed,
        }
        for pk, name, number, run, source, tags, created, changed in versions_of(who.workspace)
        .filter(**narrowed)
        .order_by("model__name", "-number")
        .values_list("pk", "model__name", "number", "run_id", "source", "tags", "created_at", "updated_at")
    ]
    page, token = _page(
        args, _ordered(_matching(rows, conditions), orders or [NEWEST_FIRST]), 10_000, 200_000
    )
    rows_by_id: dict[int, ModelVersion] = (
        versions_of(who.workspace).prefetch_related("aliases").defer("certificate").in_bulk(page)
    )
    return {
        "model_versions": [
            row_json.version(rows_by_id[pk], rows_by_id[pk].model.name) for pk in page if pk in rows_by_id
        ],
        **token,
    }


def _read(args: CallArgs, grammar: ConditionGrammar) -> tuple[list[Condition], list[AttributeOrder]]:
    return grammar.parse_conditions(text(args, "filter") or ""), grammar.parse_orders(texts(args, "order_by"))


def _matching(rows: list[Row], conditions: Sequence[Condition]) -> list[Row]:
    return [row for row in rows if all(item.matches(_value(row, item)) for item in conditions)]


def _value(row: Row, item: Condition) -> Any:
    """Returns the value that a condition compares. The tag that marks a prompt is "false" if it is absent,
    because clients filter by `!= 'true'`."""
    if item.entity == "tags":
        return row["tags"].get(item.key, "false" if item.key == PROMPT else None)
    return row[item.key]


def _ordered(rows: list[Row], orders: Sequence[AttributeOrder]) -> list[Row]:
    """Returns the sorted rows. The sort is stable: rows that compare as equal stay in the order given."""
    return sort_rows(rows, [(itemgetter(order.key), order.descending) for order in orders])


def _page(args: CallArgs, rows: list[Row], default: int, limit: int) -> tuple[list[int], JsonObject]:
    """Returns the primary keys of the page, and the token of the next page if there is one."""
    first, count = offset_of(args), max_results(args, default, limit)
    after = first + count
    return [row["pk"] for row in rows[first:after]], {"next_page_token": encode_offset(after)} if after < len(
        rows
    ) else {}
