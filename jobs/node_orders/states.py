"""The states of an order that is no run."""

from __future__ import annotations

from enum import StrEnum


class OrderState(StrEnum):
    """QUEUED -> WORKING -> DONE | FAILED | CANCELED; an order that no node has taken up may also end. Kinds
    of orders may have other words for WORKING and DONE."""

    QUEUED = "queued"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"
