"""The words of an export's life."""

from __future__ import annotations

from enum import StrEnum


class ExportState(StrEnum):
    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"
