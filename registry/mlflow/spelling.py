"""Models and versions as MLflow's JSON spells them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from django.conf import settings

from registry.models import ModelVersion, RegisteredModel
from tracking.mlflow.spelling import ARTIFACTS, full, ms, pairs

READY = "READY"
Told = dict[str, Any]


def model(row: RegisteredModel) -> Told:
    """`versions` and `aliases` are to be at hand."""
    told = {
        "name": row.name, "creation_timestamp": ms(row.created_at), "last_updated_timestamp": ms(row.updated_at),
        "description": row.description, "tags": pairs(row.tags),
        "latest_versions": [version(item, row.name) for item in latest(row.versions.all())],
        "aliases": [{"alias": alias.name, "version": str(alias.version.number)} for alias in row.aliases.all()],
    }
    return full(told)


def version(row: ModelVersion, name: str) -> Told:
    """`aliases` and `run` are to be at hand."""
    told = {
        "name": name, "version": str(row.number), "creation_timestamp": ms(row.created_at),
        "last_updated_timestamp": ms(row.updated_at), "current_stage": row.stage, "description": row.description,
        "source": row.source, "run_id": row.run_id, "status": READY, "tags": pairs(row.tags), "model_id": row.logged_model_id,
        "run_link": f"{settings.PUBLIC_URL}/runs/{row.run.number}/" if row.run else "",
        "aliases": sorted(alias.name for alias in row.aliases.all()),
    }
    return full(told)


def latest(rows: Iterable[ModelVersion]) -> list[ModelVersion]:
    """The newest of each stage."""
    newest: dict[str, ModelVersion] = {}
    for row in rows:
        if row.stage not in newest or newest[row.stage].number < row.number:
            newest[row.stage] = row
    return sorted(newest.values(), key=lambda row: row.number)


def address(row: ModelVersion) -> str:
    """Where a client fetches the version's files."""
    return f"{ARTIFACTS}/models/{quote(row.model.name, safe='')}/{row.number}"
