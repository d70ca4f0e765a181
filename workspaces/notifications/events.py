"""The events to which a channel can subscribe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

ALERT_FIRED, ALERT_CLEARED = "alert.fired", "alert.cleared"
RUN_COMPLETED, RUN_FAILED, RUN_CANCELED = "run.completed", "run.failed", "run.canceled"
TOKEN_ENDING = "token.ending"  # noqa: S105 - a word, no token
RETENTION_PLANNED = "retention.planned"
TEST = "test"

# The events to which a channel can subscribe -> their labels in its form.
CHOICES: dict[str, str] = {
    "alert.critical": "A critical alert fires",
    "alert.warning": "A warning fires",
    "alert.cleared": "A reported alert has cleared",
    RUN_COMPLETED: "A run completes",
    RUN_FAILED: "A run fails",
    RUN_CANCELED: "A run is canceled",
    TOKEN_ENDING: "A token for a Slurm expires soon",
    RETENTION_PLANNED: "A stricter retention rule is about to remove data",
}
SHORT = {
    "alert.critical": "critical alerts",
    "alert.warning": "warnings",
    "alert.cleared": "what clears",
    RUN_COMPLETED: "completed runs",
    RUN_FAILED: "failed runs",
    RUN_CANCELED: "canceled runs",
    TOKEN_ENDING: "expiring tokens",
    RETENTION_PLANNED: "stricter retention rules",
}
# The default subscriptions of a new channel.
USUAL = ("alert.critical", "alert.cleared", RUN_FAILED)


@dataclass(frozen=True)
class Event:
    """Something that happened once; `key` identifies it permanently.

    `subscriptions`: the keys of CHOICES, all of which a channel must have subscribed to. `workspaces`: those
    that may know of it; `theirs`: the one whose run it concerns, if any. `person`: the person whose run it
    is; personal channels of others do not get it. `body(workspace id)`: the JSON of the message
    (docs/alerts.md), which contains nothing that the workspace may not know."""

    name: str
    key: str
    at: datetime
    subscriptions: Collection[str]
    workspaces: Collection[int]
    body: Callable[[int], Mapping[str, Any]]
    theirs: int | None = None
    person: int | None = None
