"""What becomes of a field on its way from one format to another."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from trainhub_launch.json_types import JsonObject


class Outcome(StrEnum):
    SAME = "taken"
    CHANGED = "changed"
    NONE = "no counterpart"


class Note(NamedTuple):
    """`line`: of the file that is read, from 1; None of a file that is written. `field`: as the file that is
    read calls it, or as the spec does."""

    field: str
    outcome: Outcome
    message: str
    line: int | None = None

    def to_json(self) -> JsonObject:
        return {"line": self.line, "field": self.field, "what": self.outcome.value, "message": self.message}
