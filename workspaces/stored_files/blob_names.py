"""Which rows name stored files. `TABLES` lists every table that does. Loaded before the models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models

# Each has a column `sha256`. An app adds its own by `add` or `add_shared` when it is ready.
TABLES: list[type[models.Model]] = []
_WORKSPACE: dict[type[models.Model], str] = {}
_PERSON: dict[type[models.Model], str] = {}
# SQLite allows a limited number of parameters in one query.
AT_ONCE = 500


def add(table: type[models.Model], *, workspace: str, person: str) -> None:
    """Registers a table that names blobs; `workspace` and `person` are the look-ups from its rows to their
    workspace and to whoever made them."""
    TABLES.append(table)
    _WORKSPACE[table] = workspace
    _PERSON[table] = person


def add_shared(table: type[models.Model]) -> None:
    """Registers a table that names blobs which belong to no workspace: they count against none, and give
    none the right to name them."""
    TABLES.append(table)


def sizes_in(workspace_id: int) -> dict[tuple[int | None, str], int]:
    """Returns the size of each blob that rows of that workspace name, by the person who made them (None:
    nobody that still exists) and by its hash."""
    sizes: dict[tuple[int | None, str], int] = {}
    for table, workspace in _WORKSPACE.items():
        person = _PERSON[table]
        rows = _rows(table).filter(**{workspace: workspace_id}).order_by()
        for who, sha256, size in rows.values_list(person, "sha256", "size_bytes").distinct().iterator():
            sizes[who, sha256] = size
    return sizes


def named_in(workspace_id: int, among: Iterable[str]) -> set[str]:
    """Returns those of the hashes that a row of that workspace names."""
    candidates = list(among)
    names: set[str] = set()
    for table, workspace in _WORKSPACE.items():
        rows = _rows(table).filter(**{workspace: workspace_id, "sha256__in": candidates})
        names.update(rows.values_list("sha256", flat=True))
    return names


def named(among: Iterable[str]) -> set[str]:
    """Returns those of the hashes that any row names."""
    candidates = list(among)
    names: set[str] = set()
    for table in TABLES:
        names.update(_rows(table).filter(sha256__in=candidates).values_list("sha256", flat=True))
    return names


def _rows(table: type[models.Model]) -> models.QuerySet[Any]:
    # The default manager, so that rows hidden by a manager of their own still count.
    return table._default_manager.all()
