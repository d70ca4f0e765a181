"""One thing that is wrong or doubtful about a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "hint"]
LEVELS: tuple[Level, ...] = ("error", "warning", "hint")


@dataclass(frozen=True)
class Finding:
    """`error`: the run would not be accepted. `warning`: it will probably not do what was meant.
    `hint`: it works, and there is something to know. `field` is the JSON path in the spec."""

    level: Level
    field: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level, "field": self.field, "message": self.message}
