"""Calls of MLflow's protocol about registered models, their tags and aliases."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied

from registry import aliases, deletion, model_metadata
from registry.aliases import RESERVED
from registry.lookup import version_of
from registry.mlflow import lookup, row_json
from registry.mlflow.lookup import is_owner
from registry.mlflow.model_search import models as searched
from registry.stages import canonical
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import EXISTS, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, required_text, text, texts
from workspaces.states import Role

JsonObject = dict[str, Any]


def create(who: Caller, args: CallArgs) -> JsonObject:
    name = required_text(args, "name")
    description = text(args, "description") or ""
    try:
        model = model_metadata.create_model(
            who.workspace, name, who.user, description=description, tags=lookup.tags_of(args)
        )
    except model_metadata.Exists as error:
        raise MlflowError(EXISTS, f"Registered Model (name={name}) already exists.") from error
    return _model_json(who, model.name)


def get(who: Caller, args: CallArgs) -> JsonObject:
    return {"registered_model": row_json.models([lookup.model(who, args)])[0]}


def search(who: Caller, args: CallArgs) -> JsonObject:
    return searched(who, args)


def rename(who: Caller, args: CallArgs) -> JsonObject:
    """Renames a model. This needs the role owner, because addresses that others use change with the name."""
    if not is_owner(who):
        raise PermissionDenied(
            f"Renaming a model needs the role {Role.OWNER}. Ask an owner of {who.workspace}."
        )
    model, name = lookup.model(who, args), required_text(args, "new_name")
    try:
        model_metadata.rename(model, name, who.user)
    except model_metadata.Exists as error:
        raise MlflowError(EXISTS, f"Registered Model (name={name}) already exists.") from error
    return _model_json(who, model.name)


def update(who: Caller, args: CallArgs) -> JsonObject:
    model = lookup.describable(who, args)
    model_metadata.describe(model, text(args, "description") or "")
    return _model_json(who, model.name)


def delete(who: Caller, args: CallArgs) -> None:
    deletion.delete_model(lookup.model(who, args), who.user)


def latest_versions(who: Caller, args: CallArgs) -> JsonObject:
    model = lookup.model(who, args)
    stages = {canonical(stage) for stage in texts(args, "stages")}
    rows = [row for row in row_json.newest([model.pk])[model.pk] if not stages or row.stage in stages]
    return {"model_versions": [row_json.version(row, model.name) for row in rows]}


def set_tag(who: Caller, args: CallArgs) -> None:
    model_metadata.set_tag(
        lookup.describable(who, args), required_text(args, "key"), text(args, "value") or ""
    )


def delete_tag(who: Caller, args: CallArgs) -> None:
    model_metadata.delete_tag(lookup.describable(who, args), required_text(args, "key"))


def set_alias(who: Caller, args: CallArgs) -> None:
    version = lookup.changeable(who, args)
    aliases.set_alias(
        version.model, required_text(args, "alias"), version.number, who.user, is_owner=is_owner(who)
    )


def delete_alias(who: Caller, args: CallArgs) -> None:
    model, alias = lookup.model(who, args), required_text(args, "alias")
    for row in model.aliases.all():
        if row.name == alias:
            lookup.check_own(who, row.version)
    aliases.delete_alias(model, alias, who.user, is_owner=is_owner(who))


def by_alias(who: Caller, args: CallArgs) -> JsonObject:
    """Returns the version with that alias; for `latest` the newest version."""
    model, alias = lookup.model(who, args), required_text(args, "alias")
    if alias.lower() == "latest":
        newest = model.versions.select_related("run").order_by("-number").first()
        if newest is None:
            raise MlflowError(MISSING, f"Latest version not found for model {model.name}.")
        return {"model_version": row_json.version(newest, model.name)}
    # `version_of` would take an alias of digits for a version's number.
    version = None if RESERVED.match(alias) else version_of(who.workspace, model.name, alias)
    if version is None:
        raise MlflowError(INVALID, f"Registered model alias {alias[:100]} not found.")
    return {"model_version": row_json.version(version, model.name)}


def _model_json(who: Caller, name: str) -> JsonObject:
    return {"registered_model": row_json.models([lookup.visible_models(who).get(name=name)])[0]}
