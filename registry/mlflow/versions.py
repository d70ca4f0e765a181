"""Calls of MLflow's protocol about versions of models."""

from __future__ import annotations

from typing import Any

from registry import deletion, model_metadata, stages
from registry.mlflow import lookup, row_json
from registry.mlflow.lookup import is_owner
from registry.mlflow.model_search import versions as searched
from registry.models import ModelVersion
from registry.registration import Words, add_version
from registry.sources import SourceRequest as Source
from registry.sources import resolve
from tracking.callers import Caller
from tracking.mlflow.protocol.fields import CallArgs, required_text, text

JsonObject = dict[str, Any]


def create(who: Caller, args: CallArgs) -> JsonObject:
    """Registers a version. The model must exist: clients create it first."""
    model = lookup.model(who, args)
    source = Source(required_text(args, "source"), text(args, "run_id") or "", text(args, "model_id") or "")
    words = Words(
        model_metadata.checked_description(text(args, "description") or ""),
        model_metadata.checked_tags(lookup.tags_of(args)),
    )
    return _version_json(add_version(who.workspace, model.name, resolve(who, source), who.user, words))


def get(who: Caller, args: CallArgs) -> JsonObject:
    return _version_json(lookup.version(who, args))


def search(who: Caller, args: CallArgs) -> JsonObject:
    return searched(who, args)


def download_uri(who: Caller, args: CallArgs) -> JsonObject:
    return {"artifact_uri": row_json.address(lookup.version(who, args))}


def update(who: Caller, args: CallArgs) -> JsonObject:
    row = lookup.changeable(who, args)
    model_metadata.describe(row, text(args, "description") or "")
    return _version_json(row)


def delete(who: Caller, args: CallArgs) -> None:
    deletion.delete_version(lookup.version(who, args), who.user)


def transition_stage(who: Caller, args: CallArgs) -> JsonObject:
    row = lookup.changeable(who, args)
    # Clients send the flag as JSON's true or as text.
    archive = str(args.get("archive_existing_versions", False)).lower() == "true"
    return _version_json(
        stages.move(row, required_text(args, "stage"), who.user, archive=archive, is_owner=is_owner(who))
    )


def set_tag(who: Caller, args: CallArgs) -> None:
    model_metadata.set_tag(
        lookup.changeable(who, args), required_text(args, "key"), text(args, "value") or ""
    )


def delete_tag(who: Caller, args: CallArgs) -> None:
    model_metadata.delete_tag(lookup.changeable(who, args), required_text(args, "key"))


def _version_json(row: ModelVersion) -> JsonObject:
    return {"model_version": row_json.version(row, row.model.name)}
