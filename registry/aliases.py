"""Movable names for versions: `production` is one version today and may be another tomorrow."""

from __future__ import annotations

import re

from django.db import transaction

from registry.errors import RegistryError
from registry.models import ModelAlias, ModelVersion, RegisteredModel
from workspaces import audit
from workspaces.models import User

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
# Words that a reader would take for a version number, or for the newest one.
TAKEN = re.compile(r"v?\d+\Z|latest\Z", re.IGNORECASE)


@transaction.atomic
def set_alias(model: RegisteredModel, alias: str, number: int, user: User) -> ModelAlias:
    """Give `alias` to that version; a version that had it loses it. Raises RegistryError."""
    alias = _checked(alias)
    version = ModelVersion.objects.filter(model=model, number=number).first()
    if version is None:
        raise RegistryError("version", f"{model.name} has no version {number}; its latest is {model.last_version}")
    out, _ = ModelAlias.objects.update_or_create(model=model, name=alias, defaults={"version": version})
    audit.record(user, "model.alias-set", f"{model.name} {alias}", model.workspace, version=number)
    return out


@transaction.atomic
def delete_alias(model: RegisteredModel, alias: str, user: User) -> bool:
    """Whether there was one."""
    count, _ = ModelAlias.objects.filter(model=model, name=alias).delete()
    if count:
        audit.record(user, "model.alias-deleted", f"{model.name} {alias}", model.workspace)
    return bool(count)


def _checked(alias: str) -> str:
    alias = alias.strip()
    if not NAME.match(alias):
        raise RegistryError("alias", "use up to 64 letters, digits, '.', '_' and '-', starting with a letter, as in 'production'")
    if TAKEN.match(alias):
        raise RegistryError("alias", f"{alias!r} reads like a version itself; choose a word such as 'production'")
    return alias
