"""The assignments of a node: its parts of attempts and its other orders that are not settled, as this process
read them last."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet

from jobs.builds.models import EnvironmentBuild, is_build_id
from jobs.models import AttemptNode, DataOrder
from jobs.node_api.assignment import Assignment, Key
from jobs.node_api.order_assignment import COLUMNS, BuildAssignment, ProbeAssignment, order_assignment
from jobs.node_api.run_assignment import run_assignment
from workspaces.database.compiled_queries import compiled
from workspaces.servers.ring import ring

# For so long the reports of a busy node share one query: a flood of log bytes does not cost a query each.
REUSED_S = 0.2
# For so long what was read serves a node that reports when it was expected to. A node that was woken reports
# sooner, and its assignments are read again.
RECENT_S = 4.0


COLUMNS_OF_PARTS = (
    *("node_id", "node_rank", "claimed_at", "phase", "daemon"),
    *(f"attempt__{name}" for name in ("number", "ended_at", "failing", "served", "preempted_by")),
    *("attempt__pending_checkpoints", "attempt__run__state", "attempt__run__attempt"),
    "attempt__run__workspace_id",
)

# Node id, order id, and COLUMNS.
OrderRow = tuple[Any, ...]


class AssignmentCache:
    """The unsettled assignments of one node, as this process read them last."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._outdated_at = float("-inf")
        self._by_key: dict[Key, Assignment] = {}

    def read(self, *, fresh: bool) -> dict[Key, Assignment]:
        """Returns the node's unsettled assignments. Queries the database if `fresh`, or if the last query is
        longer ago than REUSED_S."""
        now = time.monotonic()
        with self._lock:
            previous, read_at, outdated_at = self._by_key, self._read_at, self._outdated_at
        # Newer than the last change that this process knows of; changes by other processes are seen after
        # REUSED_S at the latest.
        if not fresh and now - read_at < REUSED_S and read_at > outdated_at:
            return previous
        rows = _parts_of_node(self._node_id), _orders_of_node(self._node_id)
        self.update(now, _assignments(*rows, {self._node_id: previous}).get(self._node_id, {}))
        return self._by_key

    def recent(self) -> dict[Key, Assignment] | None:
        """Returns the assignments as they were within the last seconds, without a query; None if unknown."""
        with self._lock:
            is_recent = time.monotonic() - self._read_at <= RECENT_S and self._read_at > self._outdated_at
            return self._by_key if is_recent else None

    def last_read(self) -> dict[Key, Assignment]:
        """Returns what was read last, however long ago."""
        return self._by_key

    def update(self, read_at: float, by_key: dict[Key, Assignment]) -> None:
        """Takes the result of a query that began at `read_at` (monotonic seconds), unless a newer one is
        known."""
        with self._lock:
            # Queries may end in another order than they began.
            if read_at >= self._read_at:
                self._read_at, self._by_key = read_at, by_key

    def invalidate(self) -> None:
        """The assignments have changed: what has been read so far, or is being read now, is outdated."""
        with self._lock:
            self._outdated_at = time.monotonic()


def refresh(caches: Mapping[int, AssignmentCache]) -> None:
    """Reads the assignments of all nodes in two queries into `caches` (node id -> cache)."""
    now = time.monotonic()
    previous = {node_id: cache.last_read() for node_id, cache in caches.items()}
    if ring.is_alone:
        by_node = _assignments(_all_parts(), _all_orders(), previous)
    else:
        of_nodes = Q(node_id__in=list(caches))
        by_node = _assignments(_parts().filter(of_nodes), _orders(of_nodes), previous)
    for node_id, cache in caches.items():
        cache.update(now, by_node.get(node_id, {}))


def _assignments(
    parts: Iterable[AttemptNode],
    orders: Iterable[OrderRow],
    previous: Mapping[int, dict[Key, Assignment]],
) -> dict[int, dict[Key, Assignment]]:
    """Returns node id -> key -> assignment. `previous` is read before, whose log names still hold."""
    by_node: dict[int, dict[Key, Assignment]] = {}
    for part in parts:
        key = part.attempt.run_id, part.attempt.number
        before = previous.get(part.node_id, {}).get(key)
        by_node.setdefault(part.node_id, {})[key] = run_assignment(part, before)
    for node_id, order_id, *facts in orders:
        of_kind = BuildAssignment if is_build_id(order_id) else ProbeAssignment
        order = order_assignment(of_kind, order_id, *facts)
        by_node.setdefault(node_id, {})[order.key] = order
    return by_node


def _parts() -> QuerySet[AttemptNode]:
    return (
        AttemptNode.objects.filter(settled_at=None)
        .select_related("attempt__run")
        # Specs and plans are long, and this is read at every report of a busy node.
        .only(*COLUMNS_OF_PARTS)
        .annotate(
            planned=ExpressionWrapper(Q(attempt__plan__isnull=False), BooleanField()),
            grace_s=F("attempt__run__spec__limits__grace_s"),
        )
    )


def _orders(nodes: Q) -> QuerySet[EnvironmentBuild, OrderRow]:
    """One query for all kinds: this is read with each report of a busy node."""
    # Orders that wait for their turn are no assignment yet.
    rows = [
        kind.rows().filter(nodes, settled_at=None, offered_at__isnull=False).order_by().values_list(*COLUMNS)
        for kind in (EnvironmentBuild, DataOrder)
    ]
    return rows[0].union(*rows[1:], all=True)


@compiled
def _parts_of_node(node_id: int) -> QuerySet[AttemptNode]:
    return _parts().filter(node_id=node_id)


@compiled
def _all_parts() -> QuerySet[AttemptNode]:
    return _parts()


@compiled
def _orders_of_node(node_id: int) -> QuerySet[EnvironmentBuild, OrderRow]:
    return _orders(Q(node_id=node_id))


@compiled
def _all_orders() -> QuerySet[EnvironmentBuild, OrderRow]:
    return _orders(Q())
