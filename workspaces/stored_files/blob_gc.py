"""Deletes blobs that no row names any more. `TABLES` lists every table that names blobs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from django.db import models

from workspaces.stored_files import blobs

# Each has a column `sha256`. An app adds its own by `add` or `add_shared` when it is ready.
TABLES: list[type[models.Model]] = []
_WORKSPACE: dict[type[models.Model], str] = {}
_PERSON: dict[type[models.Model], str] = {}
# A node uploads a file before it can say which run it belongs to, and may be cut off in between.
KEEP_UNNAMED_S = 7 * 86400.0
# A blob that no row names any more is usually garbage. Only a client that has kept it within this time may
# still be about to name it.
UNDER_WAY_S = 3600.0
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


def sweep(now: float | None = None) -> int:
    """Deletes blobs that no row names and that nobody has written or kept for KEEP_UNNAMED_S; returns how
    many."""
    moment = (time.time() if now is None else now) - KEEP_UNNAMED_S
    files = blobs.unkept_since(moment)
    removed = 0
    while some := list(islice(files, AT_ONCE)):
        # A file that somebody has kept between the two looks is not removed: `drop` looks again.
        spared = named(file.name for file in some)
        removed += sum(
            blobs.drop(file, unkept_since=moment) is not None for file in some if file.name not in spared
        )
    return removed


def free(candidates: Mapping[str, float], now: float | None = None) -> int:
    """Deletes at once blobs that deleted rows have named, unless other rows name them; returns the bytes
    freed.

    `candidates`: hash -> time at which such a row was made (Unix seconds). A blob that somebody has kept
    since then, within the last hour, may be about to be named again: it is left to `sweep`, which deletes it
    an hour later."""
    at = time.time() if now is None else now
    spared = named(candidates)
    freed = 0
    for sha256, stored_at in candidates.items():
        if sha256 not in spared:
            size = blobs.drop(blobs.path(sha256), unkept_since=max(at - UNDER_WAY_S, stored_at))
            freed += size or 0
            if size is None:
                # Its time is set back, as if it had been kept long ago, so that a sweep in an hour or later
                # deletes it.
                blobs.set_stored_time(sha256, at - KEEP_UNNAMED_S + UNDER_WAY_S)
    return freed


def _rows(table: type[models.Model]) -> models.QuerySet[Any]:
    # The default manager, so that rows hidden by a manager of their own still count.
    return table._default_manager.all()
