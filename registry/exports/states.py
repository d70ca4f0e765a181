"""The states of an export."""

from __future__ import annotations

from enum import StrEnum


class ExportState(StrEnum):
    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"
