"""System checks that query the database. `migrate` runs them, so every start does, and so does `check
--database default`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

from workspaces import set_aside
from workspaces.models import Secret
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.start_test import object_row_warnings, require_store
from workspaces.secrets import hub_secrets, store

HINT = (
    "They are kept. Rows of a newer version are used again after an upgrade to that version "
    "(docs/metrics.md)."
)


KEYRING_HINT = (
    "Restore the file of SECRETS_KEYRING; if it is lost, run `manage.py secrets new-keyring` and type these "
    "again (docs/secrets.md)."
)
# A warning names this many secrets; `manage.py secrets check` names all.
MAX_NAMES = 20


@register(Tags.database)
def unreadable_secrets(databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    if "default" not in (databases or ()):
        return []
    try:
        secrets = Secret.objects.select_related("workspace").order_by("workspace_id", "name")
        broken = [f"{secret.name} ({secret.workspace.slug})" for secret, _ in store.unreadable(secrets)]
        broken += [f"{name} (the hub)" for name, _ in hub_secrets.unreadable()]
    except DatabaseError:
        return []  # before the first migration there is no table
    if not broken:
        return []
    names = ", ".join(broken[:MAX_NAMES])
    more = f" and {len(broken) - MAX_NAMES} more" if len(broken) > MAX_NAMES else ""
    text = f"These secrets cannot be decrypted, and what needs them fails: {names}{more}."
    return [Warning(text, hint=KEYRING_HINT, id="workspaces.W002")]


@register("storage")
def object_store(**_: Any) -> list[CheckMessage]:
    """Tests BLOB_STORE. For `manage.py check` alone: a store that is away takes half a minute."""
    try:
        return [Warning(sentence, id="workspaces.W003") for sentence in require_store()]
    except StoreUnavailable as error:
        return [Error(str(error), id="workspaces.E001")]


@register(Tags.database)
def stored_objects(databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    if "default" not in (databases or ()):
        return []
    return [Warning(sentence, id="workspaces.W004") for sentence in object_row_warnings()]


@register(Tags.database)
def rows_set_aside(databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    if "default" not in (databases or ()):
        return []
    try:
        return [Warning(sentence, hint=HINT, id="workspaces.W001") for sentence in set_aside.sentences()]
    except DatabaseError:
        return []  # before the first migration there is no table
