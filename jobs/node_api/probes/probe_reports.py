"""What the hub does with the reports of a node about datastores that it reads."""

from __future__ import annotations

from datetime import datetime

from clusters.models import Node
from jobs.models import DataOrder
from jobs.node_api.order_reports import OrderReports
from jobs.node_orders.states import OrderState
from trainhub_launch.report import AttemptFact
from trainhub_launch.states import StopReason


class ProbeReports(OrderReports):
    orders = DataOrder

    def note_done(self, node: Node, order: DataOrder, fact: AttemptFact, now: datetime) -> None:
        """The result came by itself."""

    def outcome(self, order: DataOrder, fact: AttemptFact) -> tuple[OrderState, str]:
        # A result has ended the order before.
        if fact.stopping == StopReason.CANCELED or order.cancel_requested_at is not None:
            return OrderState.CANCELED, order.reason
        if fact.error:
            return OrderState.FAILED, fact.error
        return OrderState.FAILED, f"{order.node.name} ended it without a result. {order.AGAIN}."
