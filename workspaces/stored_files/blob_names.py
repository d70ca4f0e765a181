"""Which rows name stored files. `TABLES` lists every table that does. Loaded before the models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection, models

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


def bytes_in(workspace_id: int) -> tuple[int, dict[int | None, int]]:
    """Returns the bytes of the blobs that rows of that workspace name, each counted once, and the same by the
    person who made the rows (None: nobody that still exists).

    The database adds them up: a large workspace has more names than fit into the memory of a worker."""
    parts: list[str] = []
    params: list[str | int] = []
    for table, workspace in _WORKSPACE.items():
        rows = _rows(table).filter(**{workspace: workspace_id}).order_by()
        sql, values = rows.values_list(_PERSON[table], "sha256", "size_bytes").query.sql_with_params()
        parts.append(sql)
        params += values
    if not parts:
        return 0, {}
    # Django has made the SQL of each part. The first one names the columns.
    names = (
        f"SELECT NULL AS person, NULL AS sha256, 0 AS size WHERE 1 = 0 UNION ALL {' UNION ALL '.join(parts)}"
    )
    once = f"SELECT person, sha256, max(size) AS size FROM ({names}) AS n GROUP BY 1, 2"  # noqa: S608
    query = f"SELECT person, sum(size) FROM ({once}) AS files GROUP BY person"  # noqa: S608
    sizes = f"SELECT max(size) AS size FROM ({once}) AS files GROUP BY sha256"  # noqa: S608
    everyone = f"SELECT sum(size) FROM ({sizes}) AS once"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        by_person = {person: int(size) for person, size in cursor.fetchall()}
        cursor.execute(everyone, params)
        total = cursor.fetchone()[0]
    return int(total or 0), by_person


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
