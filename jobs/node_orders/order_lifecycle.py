"""The states of orders that are no runs, from the offer to a node to their end. Every change is guarded by
the state that it is allowed from, so that of two processes only one makes it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from jobs.logs import log_store
from jobs.node_orders.work_order import ORDER_ATTEMPT, WorkOrder
from jobs.task_messages import wake_soon
from trainhub_launch.states import Phase


def offer_next(lane: QuerySet[Any]) -> None:
    """Offers the oldest waiting order of a lane to its node and wakes that, unless one is offered already."""
    orders = lane.filter(settled_at=None)
    try:
        with transaction.atomic():
            if orders.exclude(offered_at=None).exists():
                return
            waiting = orders.filter(ended_at=None).select_related("node").order_by("created_at", "pk")
            order: WorkOrder | None = waiting.first()
            if order is not None:
                orders.filter(pk=order.pk, offered_at=None).update(offered_at=timezone.now())
                wake_soon(order.node, order.pk, ORDER_ATTEMPT)
    except IntegrityError:
        # Another process has offered one in the same moment, and wakes the node.
        return


def take_up(order: WorkOrder, nonce: str, at: datetime) -> None:
    """Marks the order as claimed by its node. The caller has locked its row."""
    order.nonce, order.claimed_at, order.state = nonce, at, order.WORKING
    order.save(update_fields=["nonce", "claimed_at", "state"])
    order.note_change()


def finish(
    order: WorkOrder, state: str, reason: str, at: datetime, *, is_over: bool = False, is_lost: bool = False
) -> bool:
    """Ends the order. Returns False if it had ended before.

    `is_over`: nothing of it runs on the node, and no more of its log will come; always so before the node has
    claimed it. `is_lost`: another node may succeed."""
    with transaction.atomic():
        unfinished = order.rows().filter(pk=order.pk, ended_at=None)
        if not unfinished.update(state=state, reason=reason[:4000], ended_at=at, is_lost=is_lost):
            return False
        order.state, order.reason, order.ended_at = state, reason, at
        if is_over or order.claimed_at is None:
            settle(order, at)
        elif order.phase != Phase.DONE:
            # It reports, and gets the order to stop what is left.
            wake_soon(order.node, order.pk, ORDER_ATTEMPT)
        order.note_change()
    return True


def settle(order: WorkOrder, at: datetime) -> None:
    """Marks the order as settled, closes its log, and lets the node's next one begin."""
    order.rows().filter(pk=order.pk, settled_at=None).update(settled_at=at)
    order.settled_at = at
    log_store.close(order.pk, ORDER_ATTEMPT)
    order.send_offer()
