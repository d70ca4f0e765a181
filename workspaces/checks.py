"""System checks that query the database. `migrate` runs them, so every start does, and so does `check
--database default`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError

from workspaces import set_aside

HINT = (
    "They are kept. Rows of a newer version are used again after an upgrade to that version "
    "(docs/metrics.md)."
)


@register(Tags.database)
def rows_set_aside(databases: Collection[str] | None = None, **_: Any) -> list[CheckMessage]:
    if "default" not in (databases or ()):
        return []
    try:
        return [Warning(sentence, hint=HINT, id="workspaces.W001") for sentence in set_aside.sentences()]
    except DatabaseError:
        return []  # before the first migration there is no table
