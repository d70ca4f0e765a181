"""Models and versions by a filter, in an order, page by page. There are thousands of them, not millions: what
a database compares differently from another is compared here."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from registry.lookup import versions_of
from registry.mlflow import row_json
from registry.mlflow.lookup import named
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
Told = dict[str, Any]
Row = dict[str, Any]


def models(who: Caller, asked: CallArgs) -> Told:
    wanted, orders = _read(asked, MODELS)
    rows: list[Row] = [
        {
            "pk": pk,
            "name": name,
            "tags": tags,
            "creation_timestamp": made,
            "last_updated_timestamp": changed,
            "timestamp": changed,
        }
        for pk, name, tags, made, changed in RegisteredModel.objects.filter(workspace=who.workspace)
        .order_by("name")
        .values_list("pk", "name", "tags", "created_at", "updated_at")
    ]
    page, told = _page(asked, _ordered(_matching(rows, wanted), orders), 100, 1000)
    found = named(who).in_bulk(page)
    return {"registered_models": row_json.models([found[pk] for pk in page if pk in found]), **told}


def versions(who: Caller, asked: CallArgs) -> Told:
    wanted, orders = _read(asked, VERSIONS)
    narrowed = {
        NARROWED[item.key]: item.value
        for item in wanted
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
            "creation_timestamp": made,
            "last_updated_timestamp": changed,
        }
        for pk, name, number, run, source, tags, made, changed in versions_of(who.workspace)
        .filter(**narrowed)
        .order_by("model__name", "-number")
        .values_list("pk", "model__name", "number", "run_id", "source", "tags", "created_at", "updated_at")
    ]
    page, told = _page(asked, _ordered(_matching(rows, wanted), orders or [NEWEST_FIRST]), 10_000, 200_000)
    found: dict[int, ModelVersion] = (
        versions_of(who.workspace).prefetch_related("aliases").defer("certificate").in_bulk(page)
    )
    return {
        "model_versions": [row_json.version(found[pk], found[pk].model.name) for pk in page if pk in found],
        **told,
    }


def _read(asked: CallArgs, grammar: ConditionGrammar) -> tuple[list[Condition], list[AttributeOrder]]:
    return grammar.parse_conditions(text(asked, "filter") or ""), grammar.parse_orders(
        texts(asked, "order_by")
    )


def _matching(rows: list[Row], wanted: Sequence[Condition]) -> list[Row]:
    return [row for row in rows if all(item.matches(_told(row, item)) for item in wanted)]


def _told(row: Row, item: Condition) -> Any:
    """Nothing here is a prompt, and clients ask for what is none."""
    if item.entity == "tags":
        return row["tags"].get(item.key, "false" if item.key == PROMPT else None)
    return row[item.key]


def _ordered(rows: list[Row], orders: Sequence[AttributeOrder]) -> list[Row]:
    """Rows come in the order that decides where these leave two equal."""
    return sort_rows(rows, [(itemgetter(order.key), order.descending) for order in orders])


def _page(asked: CallArgs, rows: list[Row], default: int, limit: int) -> tuple[list[int], Told]:
    """Keys of the page, and where the next begins."""
    first, count = offset_of(asked), max_results(asked, default, limit)
    after = first + count
    return [row["pk"] for row in rows[first:after]], {"next_page_token": encode_offset(after)} if after < len(
        rows
    ) else {}
