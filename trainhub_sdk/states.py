"""The states of runs that end, and of those that have not begun."""

from __future__ import annotations

COMPLETED, FAILED, CANCELED = "Completed", "Failed", "Canceled"
FINAL = (COMPLETED, FAILED, CANCELED)
WAITING = ("Queued", "Provisioning", "Preparing")


def is_final(state: str) -> bool:
    return state in FINAL


def is_waiting(state: str) -> bool:
    """Returns whether no process of the run has been started in this attempt."""
    return state in WAITING
