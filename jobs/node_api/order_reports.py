"""What the hub does with the reports of a node about orders that are no runs, as far as it is the same for
all kinds."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction

from clusters.models import Node
from jobs.attempts import attempt_report_json
from jobs.attempts.run_transitions import to_datetime
from jobs.node_api.order_assignment import OrderAssignment
from jobs.node_orders import order_lifecycle
from jobs.node_orders.states import OrderState
from jobs.node_orders.work_order import WorkOrder
from trainhub_launch.report import AttemptFact
from trainhub_launch.states import PHASES, ErrorKind, Phase

log = logging.getLogger(__name__)


class OrderReports(ABC):
    """See OrderHandler. `orders`: the kind of order that it knows."""

    orders: ClassVar[type[WorkOrder]]

    def apply(self, node: Node, assignment: OrderAssignment, fact: AttemptFact, now: datetime) -> bool:
        fact = attempt_report_json.normalize(fact, node.clock_offset_s)
        with transaction.atomic():
            rows = self.orders.rows().select_for_update(of=("self",)).select_related("node")
            order: WorkOrder | None = rows.filter(pk=assignment.run).first()
            if order is None:
                return True  # what it was for was deleted a moment ago
            # Reports can overtake each other on the way.
            if order.phase and PHASES.index(fact.phase) < PHASES.index(order.phase):
                return True
            started_at = to_datetime(fact.phase_at.get(Phase.PREPARING))
            self.orders.rows().filter(pk=order.pk).update(phase=fact.phase, started_at=started_at)
            order.phase, order.started_at = fact.phase, started_at
            if fact.phase is Phase.DONE:
                self.note_done(node, order, fact, now)
                state, reason = self.outcome(order, fact)
                ended_at = to_datetime(fact.phase_at.get(Phase.RUNNING)) or now
                # The node was restarted, or its process was killed.
                is_lost = state == OrderState.FAILED and fact.error_kind == ErrorKind.INTERNAL
                order_lifecycle.finish(order, state, reason, ended_at, is_lost=is_lost)
        return True

    def close(self, node: Node, assignment: OrderAssignment, now: datetime) -> None:
        for order in self._rows(assignment):
            order_lifecycle.settle(order, now)
        log.debug("%s has settled %s", node, assignment.run)

    def end_orphan(self, node: Node, assignment: OrderAssignment, now: datetime) -> None:
        for order in self._rows(assignment):
            reason = f"{node.name} has lost it, with its disk or its processes. {order.AGAIN}."
            order_lifecycle.finish(order, OrderState.FAILED, reason, now, is_lost=True)

    def record_return(self, node: Node, assignment: OrderAssignment, silence_s: float) -> None:
        """Such an order has no list of events."""
        log.debug("%s reports again of %s after %.0f s", node, assignment.run, silence_s)

    @abstractmethod
    def note_done(self, node: Node, order: Any, fact: AttemptFact, now: datetime) -> None:
        """Records what the node has now, also if the order was given up meanwhile."""

    @abstractmethod
    def outcome(self, order: Any, fact: AttemptFact) -> tuple[str, str]:
        """Returns the state in which the order ended that its node has reported as done, and why."""

    def _rows(self, assignment: OrderAssignment) -> list[WorkOrder]:
        return list(self.orders.rows().select_related("node").filter(pk=assignment.run))
