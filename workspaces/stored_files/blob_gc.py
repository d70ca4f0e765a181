"""Freeing blobs that nothing names any more. Every table that names blobs stands in `TABLES`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from django.db import models

from workspaces.stored_files import blobs

TABLES: list[type[models.Model]] = []
"""Each has a column `sha256`. An app adds its own by `add` when it is ready."""
_WORKSPACE: dict[type[models.Model], str] = {}
KEEP_UNNAMED_S = 7 * 86400.0
"""A node uploads a file before it can say which run it belongs to, and may be cut off in between."""
UNDER_WAY_S = 3600.0
"""What was named once and is no longer is as good as gone; only who keeps it just now could still mean to
name it."""
AT_ONCE = 500


def add(table: type[models.Model], *, workspace: str) -> None:
    """A further table that names blobs; `workspace` is the look-up from its rows to the workspace that they
    belong to."""
    TABLES.append(table)
    _WORKSPACE[table] = workspace


def named_in(workspace_id: int, among: Iterable[str]) -> set[str]:
    """Which of these hashes a row of that workspace names."""
    asked = list(among)
    found: set[str] = set()
    for table in TABLES:
        rows = _rows(table).filter(**{_WORKSPACE[table]: workspace_id, "sha256__in": asked})
        found.update(rows.values_list("sha256", flat=True))
    return found


def named(among: Iterable[str]) -> set[str]:
    """Which of these hashes a row names."""
    asked = list(among)
    found: set[str] = set()
    for table in TABLES:
        found.update(_rows(table).filter(sha256__in=asked).values_list("sha256", flat=True))
    return found


def sweep(now: float | None = None) -> int:
    """Delete what nothing names and nobody wrote or kept for days; how many files went."""
    moment = (time.time() if now is None else now) - KEEP_UNNAMED_S
    files = blobs.unkept_since(moment)
    gone = 0
    while some := list(islice(files, AT_ONCE)):
        spared = named(file.name for file in some)
        gone += sum(
            blobs.drop(file, unkept_since=moment) is not None for file in some if file.name not in spared
        )
    return gone


def free(let_go: Mapping[str, float], now: float | None = None) -> int:
    """Delete at once what rows that are gone had named, and no other names; the bytes freed.

    `let_go`: the hash -> when such a row was made (Unix seconds). What somebody has kept since then, within
    the hour, may be about to be named anew: that is left to `sweep`, which then takes it an hour later."""
    at = time.time() if now is None else now
    spared = named(let_go)
    freed = 0
    for sha256, made_at in let_go.items():
        if sha256 not in spared:
            size = blobs.drop(blobs.path(sha256), unkept_since=max(at - UNDER_WAY_S, made_at))
            freed += size or 0
            if size is None:
                blobs.forgo(sha256, at - KEEP_UNNAMED_S + UNDER_WAY_S)
    return freed


def _rows(table: type[models.Model]) -> models.QuerySet[Any]:
    return table._default_manager.all()
