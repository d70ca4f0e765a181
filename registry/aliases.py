"""Aliases: movable names for versions of a model. `production` may be version 3 today and version 4
tomorrow."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils import timezone

from registry.errors import RegistryError
from registry.models import ModelAlias, ModelVersion, RegisteredModel
from registry.stages import check_protected
from workspaces import audit
from workspaces.models import User

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
# Words that a reader would take for a version number, or for the newest one.
RESERVED = re.compile(r"v?\d+\Z|latest\Z", re.IGNORECASE)


@transaction.atomic
def set_alias(
    model: RegisteredModel, alias: str, number: int, user: User | None, *, is_owner: bool = False
) -> ModelAlias:
    """Points `alias` to version `number` of the model, and away from any other version.

    Raises RegistryError for an unusable alias or a missing version, and PermissionDenied for a protected
    alias unless `is_owner`.
    """
    alias = check_alias(alias)
    check_protected(model, (alias,), is_owner=is_owner)
    version = ModelVersion.objects.filter(model=model, number=number).first()
    if version is None:
        raise RegistryError(
            "version", f"{model.name} has no version {number}; its latest is {model.last_version}"
        )
    out, _ = ModelAlias.objects.update_or_create(model=model, name=alias, defaults={"version": version})
    _touched(model)
    audit.record(user or "a job", "model.alias-set", f"{model.name} {alias}", model.workspace, version=number)
    return out


@transaction.atomic
def delete_alias(model: RegisteredModel, alias: str, user: User | None, *, is_owner: bool = False) -> bool:
    """Deletes the alias and returns whether it existed. Raises PermissionDenied for a protected alias unless
    `is_owner`."""
    check_protected(model, (alias,), is_owner=is_owner)
    count, _ = ModelAlias.objects.filter(model=model, name=alias).delete()
    if count:
        _touched(model)
        audit.record(user or "a job", "model.alias-deleted", f"{model.name} {alias}", model.workspace)
    return bool(count)


def check_alias(alias: str) -> str:
    """Returns `alias` without surrounding spaces. Raises RegistryError if it cannot be an alias."""
    alias = alias.strip()
    if not NAME.match(alias):
        raise RegistryError("alias", "use up to 64 letters, digits, '.', '_' and '-', as in 'production'")
    if RESERVED.match(alias):
        raise RegistryError("alias", f"{alias!r} looks like a version; choose a word such as 'production'")
    return alias


def _touched(model: RegisteredModel) -> None:
    # update() does not apply auto_now, and leaves the other columns alone, which another request may be
    # changing.
    RegisteredModel.objects.filter(pk=model.pk).update(updated_at=timezone.now())
