"""The value type of a finding: one thing that is wrong or doubtful about a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "hint"]
LEVELS: tuple[Level, ...] = ("error", "warning", "hint")


@dataclass(frozen=True)
class Finding:
    """One finding. `level`: `error` means that the run would be refused, `warning` that it will probably not
    do what was intended, and `hint` that it works but the user should know something. `field` is the JSON
    path in the spec. `action`: what the page at the hub's path `link` does about it, such as "Add pandas";
    both "" if the remedy is not one change."""

    level: Level
    field: str
    message: str
    action: str = ""
    link: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "field": self.field,
            "message": self.message,
            "action": self.action,
            "link": self.link,
        }
