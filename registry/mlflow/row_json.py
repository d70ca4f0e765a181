"""Models and versions as MLflow's JSON spells them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import Max

from registry.models import ModelVersion, RegisteredModel
from tracking.mlflow.protocol.row_json import ARTIFACTS, tag_list, unix_ms, without_empty

READY = "READY"
Told = dict[str, Any]


def models(rows: Sequence[RegisteredModel]) -> list[Told]:
    """With the newest version of each stage, however many versions there are."""
    found = newest([row.pk for row in rows])
    return [_model(row, found[row.pk]) for row in rows]


def newest(models: Collection[int]) -> dict[int, list[ModelVersion]]:
    """Model -> its newest version of each stage, by their numbers."""
    told = (
        ModelVersion.objects.filter(model__in=models)
        .order_by()
        .values("model", "stage")
        .annotate(number=Max("number"))
    )
    wanted = set(told.values_list("model", "number"))
    rows = ModelVersion.objects.filter(
        model__in=models, number__in={number for _, number in wanted}
    ).order_by("number")
    found: dict[int, list[ModelVersion]] = {key: [] for key in models}
    for row in rows.select_related("run").prefetch_related("aliases").defer("certificate", "scan"):
        if (row.model_id, row.number) in wanted:
            found[row.model_id].append(row)
    return found


def _model(row: RegisteredModel, latest: Sequence[ModelVersion]) -> Told:
    """`aliases` are to be at hand."""
    told = {
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
    return without_empty(told)


def version(row: ModelVersion, name: str) -> Told:
    """`aliases` and `run` are to be at hand."""
    told = {
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
    return without_empty(told)


def address(row: ModelVersion) -> str:
    """Where a client fetches the version's files."""
    return f"{ARTIFACTS}/models/{quote(row.model.name, safe='')}/{row.number}"
