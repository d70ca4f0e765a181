"""Why a node does not get an order."""

from __future__ import annotations


class Refused(Exception):
    """The node must not carry out this order; the message explains why."""


class Later(Refused):
    """The order is not available yet, because other nodes of the attempt are not ready. The node claims again
    after a wake-up or the answer to a report."""
