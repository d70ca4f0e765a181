"""Calls about registered models, their tags and aliases."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied

from registry import aliases, deletion, model_metadata
from registry.aliases import TAKEN
from registry.lookup import version_of
from registry.mlflow import lookup, row_json
from registry.mlflow.lookup import is_owner
from registry.mlflow.model_search import models as searched
from registry.stages import canonical
from tracking.callers import Caller
from tracking.mlflow.protocol.errors import EXISTS, INVALID, MISSING, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, required_text, text, texts
from workspaces.states import Role

Told = dict[str, Any]


def create(who: Caller, asked: CallArgs) -> Told:
    name = required_text(asked, "name")
    told = text(asked, "description") or ""
    try:
        made = model_metadata.create_model(
            who.workspace, name, who.user, description=told, tags=lookup.tags_of(asked)
        )
    except model_metadata.Exists as error:
        raise MlflowError(EXISTS, f"Registered Model (name={name}) already exists.") from error
    return _told(who, made.name)


def get(who: Caller, asked: CallArgs) -> Told:
    return {"registered_model": row_json.models([lookup.model(who, asked)])[0]}


def search(who: Caller, asked: CallArgs) -> Told:
    return searched(who, asked)


def rename(who: Caller, asked: CallArgs) -> Told:
    """Addresses that others use change with the name, so it takes an owner."""
    if not is_owner(who):
        raise PermissionDenied(
            f"Renaming a model needs the role {Role.OWNER}. Ask an owner of {who.workspace}."
        )
    found, name = lookup.model(who, asked), required_text(asked, "new_name")
    try:
        model_metadata.rename(found, name, who.user)
    except model_metadata.Exists as error:
        raise MlflowError(EXISTS, f"Registered Model (name={name}) already exists.") from error
    return _told(who, found.name)


def update(who: Caller, asked: CallArgs) -> Told:
    found = lookup.describable(who, asked)
    model_metadata.describe(found, text(asked, "description") or "")
    return _told(who, found.name)


def delete(who: Caller, asked: CallArgs) -> None:
    deletion.delete_model(lookup.model(who, asked), who.user)


def latest_versions(who: Caller, asked: CallArgs) -> Told:
    found = lookup.model(who, asked)
    stages = {canonical(stage) for stage in texts(asked, "stages")}
    rows = [row for row in row_json.newest([found.pk])[found.pk] if not stages or row.stage in stages]
    return {"model_versions": [row_json.version(row, found.name) for row in rows]}


def set_tag(who: Caller, asked: CallArgs) -> None:
    model_metadata.set_tag(
        lookup.describable(who, asked), required_text(asked, "key"), text(asked, "value") or ""
    )


def delete_tag(who: Caller, asked: CallArgs) -> None:
    model_metadata.delete_tag(lookup.describable(who, asked), required_text(asked, "key"))


def set_alias(who: Caller, asked: CallArgs) -> None:
    version = lookup.changeable(who, asked)
    aliases.set_alias(
        version.model, required_text(asked, "alias"), version.number, who.user, is_owner=is_owner(who)
    )


def delete_alias(who: Caller, asked: CallArgs) -> None:
    found, alias = lookup.model(who, asked), required_text(asked, "alias")
    for row in found.aliases.all():
        if row.name == alias:
            lookup.check_own(who, row.version)
    aliases.delete_alias(found, alias, who.user, is_owner=is_owner(who))


def by_alias(who: Caller, asked: CallArgs) -> Told:
    """`latest` is the newest version."""
    found, alias = lookup.model(who, asked), required_text(asked, "alias")
    if alias.lower() == "latest":
        newest = found.versions.select_related("run").order_by("-number").first()
        if newest is None:
            raise MlflowError(MISSING, f"Latest version not found for model {found.name}.")
        return {"model_version": row_json.version(newest, found.name)}
    version = None if TAKEN.match(alias) else version_of(who.workspace, found.name, alias)
    if version is None:
        raise MlflowError(INVALID, f"Registered model alias {alias[:100]} not found.")
    return {"model_version": row_json.version(version, found.name)}


def _told(who: Caller, name: str) -> Told:
    return {"registered_model": row_json.models([lookup.named(who).get(name=name)])[0]}
