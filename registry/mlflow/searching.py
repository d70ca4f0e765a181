"""Models and versions by a filter, in an order, page by page. There are thousands of them, not millions: what a database
compares differently from another is compared here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from registry.lookup import versions_of
from registry.mlflow import spelling
from registry.mlflow.filters import NUMBER, TEXT, Comparison, Order, parse, parse_orders
from registry.mlflow.finding import named
from registry.models import ModelVersion, RegisteredModel
from tracking.callers import Caller
from tracking.mlflow.errors import INVALID, MlflowError
from tracking.mlflow.fields import Asked, most, text, texts
from tracking.mlflow.paging import start, token
from tracking.search.errors import FilterError

MODEL_KEYS = {"name": TEXT}
MODEL_ORDERS = ("name", "creation_timestamp", "last_updated_timestamp", "timestamp")
VERSION_KEYS = {"name": TEXT, "version_number": NUMBER, "run_id": TEXT, "source_path": TEXT}
VERSION_ORDERS = ("name", "version_number", "creation_timestamp", "last_updated_timestamp")
NARROWED = {"name": "model__name", "run_id": "run_id", "version_number": "number"}
Told = dict[str, Any]
Row = dict[str, Any]


def models(who: Caller, asked: Asked) -> Told:
    wanted, orders = _read(asked, MODEL_KEYS, MODEL_ORDERS)
    rows: list[Row] = [
        {
            "pk": pk, "name": name, "tags": tags, "creation_timestamp": made, "last_updated_timestamp": changed,
            "timestamp": changed,
        }
        for pk, name, tags, made, changed in RegisteredModel.objects.filter(workspace=who.workspace).order_by("name")
        .values_list("pk", "name", "tags", "created_at", "updated_at")
    ]
    page, told = _page(asked, _ordered(_matching(rows, wanted), orders), 100, 1000)
    found = named(who).in_bulk(page)
    return {"registered_models": spelling.models([found[pk] for pk in page if pk in found]), **told}


def versions(who: Caller, asked: Asked) -> Told:
    wanted, orders = _read(asked, VERSION_KEYS, VERSION_ORDERS)
    narrowed = {
        NARROWED[item.key]: item.value for item in wanted if not item.is_tag and item.operator == "=" and item.key in NARROWED
    }
    rows: list[Row] = [
        {
            "pk": pk, "name": name, "version_number": number, "run_id": run or "", "source_path": source, "tags": tags,
            "creation_timestamp": made, "last_updated_timestamp": changed,
        }
        for pk, name, number, run, source, tags, made, changed in versions_of(who.workspace).filter(**narrowed)
        .order_by("model__name", "-number")
        .values_list("pk", "model__name", "number", "run_id", "source", "tags", "created_at", "updated_at")
    ]
    by_default = [Order("last_updated_timestamp", True)]
    page, told = _page(asked, _ordered(_matching(rows, wanted), orders or by_default), 10_000, 200_000)
    found: dict[int, ModelVersion] = versions_of(who.workspace).prefetch_related("aliases").defer("certificate").in_bulk(page)
    return {"model_versions": [spelling.version(found[pk], found[pk].model.name) for pk in page if pk in found], **told}


def _read(asked: Asked, keys: dict[str, str], orders: Sequence[str]) -> tuple[list[Comparison], list[Order]]:
    try:
        return parse(text(asked, "filter") or "", keys), parse_orders(texts(asked, "order_by"), orders)
    except FilterError as error:
        raise MlflowError(INVALID, f"Invalid {error.field}: {error}") from error


def _matching(rows: list[Row], wanted: Sequence[Comparison]) -> list[Row]:
    return [row for row in rows if all(item.holds(row) for item in wanted)]


def _ordered(rows: list[Row], orders: Sequence[Order]) -> list[Row]:
    """Rows come in the order that decides where these leave two equal."""
    for order in reversed(orders):
        rows.sort(key=lambda row: row[order.key], reverse=order.descending)
    return rows


def _page(asked: Asked, rows: list[Row], default: int, limit: int) -> tuple[list[int], Told]:
    """Keys of the page, and where the next begins."""
    first, count = start(asked), most(asked, default, limit)
    after = first + count
    return [row["pk"] for row in rows[first:after]], {"next_page_token": token(after)} if after < len(rows) else {}
