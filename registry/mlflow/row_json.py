"""Converts models and versions to the JSON of MLflow's protocol."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import Max

from registry.models import ModelVersion, RegisteredModel
from tracking.mlflow.protocol.row_json import ARTIFACTS, tag_list, unix_ms, without_empty

READY = "READY"
JsonObject = dict[str, Any]


def models(rows: Sequence[RegisteredModel]) -> list[JsonObject]:
    """Returns the models as JSON, each with its newest version of each stage. The number of versions does not
    matter."""
    newest_versions = newest([row.pk for row in rows])
    return [_model(row, newest_versions[row.pk]) for row in rows]


def newest(models: Collection[int]) -> dict[int, list[ModelVersion]]:
    """Returns model key -> its newest version of each stage, ordered by number."""
    named_versions = (
        ModelVersion.objects.filter(model__in=models)
        .order_by()
        .values("model", "stage")
        .annotate(number=Max("number"))
    )
    keys = set(named_versions.values_list("model", "number"))
    rows = ModelVersion.objects.filter(model__in=models, number__in={number for _, number in keys}).order_by(
        "number"
    )
    versions: dict[int, list[ModelVersion]] = {key: [] for key in models}
    for row in rows.select_related("run").prefetch_related("aliases").defer("certificate", "scan"):
        # The query also returns versions whose number is the newest one of another model.
        if (row.model_id, row.number) in keys:
            versions[row.model_id].append(row)
    return versions


def _model(row: RegisteredModel, latest: Sequence[ModelVersion]) -> JsonObject:
    """Returns the model as JSON. The caller has prefetched `aliases`."""
    fields = {
        "name": row.name,
        "creation_timestamp": unix_ms(row.created_at),
        "last_updated_timestamp": unix_ms(row.updated_at),
        "description": row.description,
        "tags": tag_list(row.tags),
        "latest_versions": [version(item, row.name) for item in latest],
        "aliases": [
            {"alias": alias.name, "version": str(alias.version.number)} for alias in row.aliases.all()
        ],
    }
    return without_empty(fields)


def version(row: ModelVersion, name: str) -> JsonObject:
    """Returns the version as JSON. The caller has prefetched `aliases` and selected `run`."""
    fields = {
        "name": name,
        "version": str(row.number),
        "creation_timestamp": unix_ms(row.created_at),
        "last_updated_timestamp": unix_ms(row.updated_at),
        "current_stage": row.stage,
        "description": row.description,
        "source": row.source,
        "run_id": row.run_id,
        "status": READY,
        "tags": tag_list(row.tags),
        "model_id": row.logged_model_id,
        "run_link": f"{settings.PUBLIC_URL}/runs/{row.run.number}/" if row.run else "",
        "aliases": sorted(alias.name for alias in row.aliases.all()),
    }
    return without_empty(fields)


def address(row: ModelVersion) -> str:
    """Returns the address at which a client downloads the version's files."""
    return f"{ARTIFACTS}/models/{quote(row.model.name, safe='')}/{row.number}"
