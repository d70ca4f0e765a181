"""What a channel can tell of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

ALERT_FIRED, ALERT_CLEARED = "alert.fired", "alert.cleared"
RUN_COMPLETED, RUN_FAILED, RUN_CANCELED = "run.completed", "run.failed", "run.canceled"
TEST = "test"

CHOICES: dict[str, str] = {
    "alert.critical": "A critical alert fires",
    "alert.warning": "A warning fires",
    "alert.cleared": "An alert that was told has cleared",
    RUN_COMPLETED: "A run completes",
    RUN_FAILED: "A run fails",
    RUN_CANCELED: "A run is canceled",
}
"""What a channel may ask for, and how its form says it."""
SHORT = {
    "alert.critical": "critical alerts",
    "alert.warning": "warnings",
    "alert.cleared": "what clears",
    RUN_COMPLETED: "completed runs",
    RUN_FAILED: "failed runs",
    RUN_CANCELED: "canceled runs",
}
USUAL = ("alert.critical", "alert.cleared", RUN_FAILED)
"""Chosen where nobody chooses."""


@dataclass(frozen=True)
class Event:
    """Something that happened, once: `key` names it for good.

    `asked_as`: the words of CHOICES of which a channel must have asked for all. `workspaces`: who may know;
    `theirs`: the workspace whose run it concerns, if any. `person`: whose run it is; another's own channels
    are not told of it. `body(workspace id)`: the JSON that goes out (docs/alerts.md), with nothing in it that
    the workspace may not know."""

    name: str
    key: str
    at: datetime
    asked_as: Collection[str]
    workspaces: Collection[int]
    body: Callable[[int], Mapping[str, Any]]
    theirs: int | None = None
    person: int | None = None
