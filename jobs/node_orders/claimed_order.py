"""The claim of an order that is no run, as far as it is the same for all kinds."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from clusters.models import Node
from jobs.node_orders.refusals import Refused
from jobs.node_orders.work_order import ORDER_ATTEMPT


def lock_offered(
    orders: QuerySet[Any], node: Node, order_id: str, attempt: int, nonce: str, *, capability: str
) -> Any:
    """Returns the order that the node claims, and locks its row. Raises Refused. `capability`: what the
    node's agent must have to understand it."""
    order = orders.select_for_update(of=("self",)).filter(pk=order_id, node=node).first()
    if order is None or attempt != ORDER_ATTEMPT or order.offered_at is None:
        raise Refused("This order is not for this node now.")
    if order.is_finished or order.cancel_requested_at is not None:
        raise Refused("This order is over.")
    if capability not in node.capabilities.split():
        # It would start a run without processes. The node may have got an older agent since the order.
        raise Refused("This agent takes no orders of this kind; upgrade it.")
    if order.claimed_at is not None and order.nonce != nonce:
        raise Refused("This order has been claimed before.")
    return order
