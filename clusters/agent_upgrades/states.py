from __future__ import annotations

from enum import StrEnum


class RolloutState(StrEnum):
    """RUNNING -> DONE, FAILED (a node failed, and the rest was left as it was) or CANCELED."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"


class UpgradeState(StrEnum):
    """WAITING -> ORDERED -> DONE or FAILED; SKIPPED from WAITING, if the rollout ends before its turn."""

    WAITING = "waiting"
    ORDERED = "ordered"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "left out"
