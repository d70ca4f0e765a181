"""Calls about versions of models."""

from __future__ import annotations

from typing import Any

from registry import deletion, model_metadata, stages
from registry.mlflow import lookup, row_json
from registry.mlflow.lookup import is_owner
from registry.mlflow.model_search import versions as searched
from registry.models import ModelVersion
from registry.registration import Words, add_version
from registry.sources import Asked as Source
from registry.sources import resolve
from tracking.callers import Caller
from tracking.mlflow.protocol.fields import CallArgs, required_text, text

Told = dict[str, Any]


def create(who: Caller, asked: CallArgs) -> Told:
    """The model must be there: clients make it first."""
    model = lookup.model(who, asked)
    source = Source(
        required_text(asked, "source"), text(asked, "run_id") or "", text(asked, "model_id") or ""
    )
    told = Words(
        model_metadata.checked_description(text(asked, "description") or ""),
        model_metadata.checked_tags(lookup.tags_of(asked)),
    )
    return _told(add_version(who.workspace, model.name, resolve(who, source), who.user, told))


def get(who: Caller, asked: CallArgs) -> Told:
    return _told(lookup.version(who, asked))


def search(who: Caller, asked: CallArgs) -> Told:
    return searched(who, asked)


def download_uri(who: Caller, asked: CallArgs) -> Told:
    return {"artifact_uri": row_json.address(lookup.version(who, asked))}


def update(who: Caller, asked: CallArgs) -> Told:
    found = lookup.changeable(who, asked)
    model_metadata.describe(found, text(asked, "description") or "")
    return _told(found)


def delete(who: Caller, asked: CallArgs) -> None:
    deletion.delete_version(lookup.version(who, asked), who.user)


def transition_stage(who: Caller, asked: CallArgs) -> Told:
    found = lookup.changeable(who, asked)
    archive = str(asked.get("archive_existing_versions", False)).lower() == "true"
    return _told(
        stages.move(found, required_text(asked, "stage"), who.user, archive=archive, is_owner=is_owner(who))
    )


def set_tag(who: Caller, asked: CallArgs) -> None:
    model_metadata.set_tag(
        lookup.changeable(who, asked), required_text(asked, "key"), text(asked, "value") or ""
    )


def delete_tag(who: Caller, asked: CallArgs) -> None:
    model_metadata.delete_tag(lookup.changeable(who, asked), required_text(asked, "key"))


def _told(row: ModelVersion) -> Told:
    return {"model_version": row_json.version(row, row.model.name)}
