"""Selects candidate runs first if one condition of a filter matches only a few.

SQLite has no statistics here: it would read all runs in order to find two. PostgreSQL plans this by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from tracking.models import Star
from tracking.search.compiler import Scope, rows_by_key
from tracking.search.tree import And, Comparison, Key, Node
from tracking.search.vocabulary import KeyKind

FEW = 1000
# `starred` and `starred != false` both require a star.
STARRED = tuple(
    Comparison(Key(KeyKind.ATTRIBUTE, "starred"), operator, value)
    for operator, value in (("=", True), ("!=", False))
)


def prefilter_scope(node: Node | None, scope: Scope) -> Scope:
    """Returns `scope`, limited to the candidate runs if a condition of the filter matches at most FEW."""
    if node is None or connection.vendor != "sqlite":
        return scope
    # The first condition that only few runs meet is enough; the full filter is then evaluated on those runs.
    for rows in (*_starred(node, scope), *rows_by_key(node, scope).values()):
        # One id more than FEW shows that there are too many, without reading all of them.
        run_ids = list(rows.order_by().values_list("run_id", flat=True)[: FEW + 1])
        if len(run_ids) <= FEW:
            return replace(scope, runs=tuple(run_ids))
    return scope


def _starred(node: Node, scope: Scope) -> Iterator[QuerySet[Any]]:
    for part in node.parts if isinstance(node, And) else (node,):
        if part in STARRED and scope.user_id is not None:
            yield Star.objects.filter(user_id=scope.user_id, run__experiment__in=scope.experiments)
