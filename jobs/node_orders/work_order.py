"""The columns of an order to a node that is no run. Part of `jobs.models`, which every other module
imports."""

from __future__ import annotations

import re
import uuid
from typing import Any, ClassVar

from django.db import models

from clusters.models import Node
from jobs.node_orders.states import OrderState
from workspaces.models import User

# An order travels to its node, and its log comes back, like the only attempt of a run.
ORDER_ATTEMPT = 1
# The digit of an id that holds the version of a UUID is 4 in those of runs; each kind of order has another.
VERSION_AT = 12


def new_order_id(digit: str) -> str:
    """Returns a new id of 32 hex digits, which no run and no order of another kind can have."""
    random = uuid.uuid4().hex
    return f"{random[:VERSION_AT]}{digit}{random[VERSION_AT + 1 :]}"


def id_pattern(digit: str) -> re.Pattern[str]:
    """Returns the pattern of the ids of one kind of orders."""
    return re.compile(rf"[0-9a-f]{{{VERSION_AT}}}{digit}[0-9a-f]{{{31 - VERSION_AT}}}\Z")


class WorkOrder(models.Model):
    """An order to a node. Only `jobs.node_orders.order_lifecycle` writes its state.

    `is_lost`: it failed for no reason of its own, so that another node may succeed. `reason`: a sentence why
    it failed or who canceled it. `offered_at`: since when its node may claim it; a node is offered one of a
    lane at a time. `phase`: how far the node is (Phase). `ended_at`: when its outcome was known here;
    `settled_at`: since when its node runs nothing of it any more and sends nothing of its log."""

    # The state while its node works on it.
    WORKING: ClassVar[str] = OrderState.WORKING
    # What somebody does who wants it once more.
    AGAIN: ClassVar[str] = "Order it again"

    id = models.CharField(primary_key=True, max_length=32, editable=False)
    node = models.ForeignKey(Node, models.CASCADE, related_name="+")
    state = models.CharField(max_length=16)
    is_lost = models.BooleanField(default=False)
    reason = models.TextField(blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    offered_at = models.DateTimeField(null=True)
    nonce = models.CharField(max_length=32, blank=True)
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    phase = models.CharField(max_length=16, blank=True)

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.ended_at is not None

    @property
    def duration_s(self) -> float | None:
        """Returns how long the node worked on it; None while it does, and if it never did."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, (self.ended_at - self.started_at).total_seconds())

    @classmethod
    def rows(cls) -> models.QuerySet[Any]:
        """Returns all orders of this kind."""
        return cls._default_manager.all()

    @property
    def lane(self) -> dict[str, int | str]:
        """The filter of the orders of which the node gets one at a time, this one among them."""
        return {"node_id": self.node_id}

    def send_offer(self) -> None:
        """Has the worker offer the node the next order, once the transaction has committed."""
        raise NotImplementedError

    def note_change(self) -> None:
        """Does what follows from a new state, in the same transaction."""
        raise NotImplementedError
