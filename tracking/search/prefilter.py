"""Few runs first: a part of a filter that few runs meet is asked for beforehand, and everything else of those
alone.

SQLite keeps no statistics: it would walk all runs in the wanted order for the two that are meant. PostgreSQL
knows better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from tracking.models import Star
from tracking.search.compiler import Scope, logged
from tracking.search.tree import And, Comparison, Key, Node
from tracking.search.vocabulary import Kind

FEW = 1000
STARRED = tuple(
    Comparison(Key(Kind.ATTRIBUTE, "starred"), operator, value)
    for operator, value in (("=", True), ("!=", False))
)


def narrowed(node: Node | None, scope: Scope) -> Scope:
    """`scope` with the runs that come into question, where those are few."""
    if node is None or connection.vendor != "sqlite":
        return scope
    for rows in (*_starred(node, scope), *logged(node, scope).values()):
        found = list(rows.order_by().values_list("run_id", flat=True)[: FEW + 1])
        if len(found) <= FEW:
            return replace(scope, runs=tuple(found))
    return scope


def _starred(node: Node, scope: Scope) -> Iterator[QuerySet[Any]]:
    for part in node.parts if isinstance(node, And) else (node,):
        if part in STARRED and scope.user_id is not None:
            yield Star.objects.filter(user_id=scope.user_id, run__experiment__in=scope.experiments)
