"""What the hub does with the reports about each kind of order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from clusters.models import Node
from jobs.builds.models import EnvironmentBuild, is_build_id
from jobs.data_orders.models import is_data_order_id
from jobs.models import AttemptNode, DataOrder
from jobs.node_api.assignment import Key
from jobs.node_api.build_reports import BuildReports
from jobs.node_api.probes.probe_reports import ProbeReports
from jobs.node_api.run_reports import RunReports
from trainhub_launch.order import OrderKind
from trainhub_launch.report import AttemptFact


class OrderHandler(Protocol):
    """Knows one kind of order, and gets assignments of that kind only."""

    def apply(self, node: Node, assignment: Any, fact: AttemptFact, now: datetime) -> bool:
        """Stores the fact. Returns False if the node must report it again."""

    def close(self, node: Node, assignment: Any, now: datetime) -> None:
        """Settles the order: nothing of it runs on the node, and no more of its logs will come."""

    def end_orphan(self, node: Node, assignment: Any, now: datetime) -> None:
        """Ends an order that the node has lost. `close` was called before."""

    def record_return(self, node: Node, assignment: Any, silence_s: float) -> None:
        """Notes that the node reports again."""


HANDLERS: Mapping[OrderKind, OrderHandler] = {
    OrderKind.RUN: RunReports(),
    OrderKind.BUILD: BuildReports(),
    OrderKind.PROBE: ProbeReports(),
}


def was_settled(node: Node, key: Key) -> bool:
    """Returns whether the node had this order, and it is settled."""
    if is_build_id(key[0]):
        return EnvironmentBuild.objects.filter(node=node, pk=key[0], settled_at__isnull=False).exists()
    if is_data_order_id(key[0]):
        return DataOrder.objects.filter(node=node, pk=key[0], settled_at__isnull=False).exists()
    return AttemptNode.objects.filter(
        node=node, attempt__run_id=key[0], attempt__number=key[1], settled_at__isnull=False
    ).exists()
