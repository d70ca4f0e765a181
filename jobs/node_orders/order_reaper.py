"""The periodic check of orders that are no runs: repeats offers whose trigger was lost, and ends orders whose
node does not answer, so that none is stuck."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from clusters.node_reports import heartbeat
from clusters.node_reports.hub_uptime import ListeningWindow
from clusters.states import NodeStatus
from jobs.node_orders import order_lifecycle
from jobs.node_orders.states import OrderState
from jobs.node_orders.work_order import WorkOrder

CANCEL_PATIENCE_S = 30


def check_orders(kind: type[WorkOrder], now: datetime, span: ListeningWindow) -> None:
    """Checks every order of this kind that is not settled."""
    unsettled = kind.rows().filter(settled_at=None).select_related("node")
    busy = [order.lane for order in unsettled if order.offered_at is not None]
    for order in unsettled:
        if order.node.removed_at is not None:
            _end_on_removed_node(order, now)
        elif order.offered_at is None:
            if order.lane not in busy:
                busy.append(order.lane)
                order_lifecycle.offer_next(kind.rows().filter(**order.lane))
        elif not order.is_finished:
            _check_offered(order, order.offered_at, now, span)


def _check_offered(order: WorkOrder, offered_at: datetime, now: datetime, span: ListeningWindow) -> None:
    name, again = order.node.name, f"{order.AGAIN} when the node reports."
    status = heartbeat.status(order.node, now, span)
    if order.claimed_at is None:
        # No node can claim anything while the hub does not listen.
        waited_s = ((span.until or now) - max(offered_at, span.since)).total_seconds()
        if waited_s >= settings.NEVER_STARTED_AFTER:
            reason = f"{name} did not take it up within {settings.NEVER_STARTED_AFTER:.0f} s. {again}"
            order_lifecycle.finish(order, OrderState.FAILED, reason, now, is_lost=True)
    elif status in (NodeStatus.LOST, NodeStatus.REVOKED):
        silent_s = heartbeat.silence_s(order.node, now, span)
        reason = (
            f"Node {name} was removed while it worked on it."
            if status is NodeStatus.REVOKED
            else f"Node {name} has not reported for {silent_s:.0f} s. {again}"
        )
        order_lifecycle.finish(order, OrderState.FAILED, reason, now, is_lost=True)
    elif (
        order.cancel_requested_at is not None
        and status is not NodeStatus.READY
        and (now - order.cancel_requested_at).total_seconds() >= CANCEL_PATIENCE_S
    ):
        order_lifecycle.finish(order, OrderState.CANCELED, order.reason, now)


def _end_on_removed_node(order: WorkOrder, now: datetime) -> None:
    """A removed node confirms nothing any more: its removal implies that nothing runs there."""
    reason = f"Node {order.node.name} was removed."
    if not order_lifecycle.finish(order, OrderState.FAILED, reason, now, is_over=True, is_lost=True):
        order_lifecycle.settle(order, now)
