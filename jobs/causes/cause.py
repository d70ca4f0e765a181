"""The cause of a failed attempt as the hub stores it, the API returns it and pages show it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainhub_launch.json_types import JsonObject

MAX_LINE_LENGTH = 240


@dataclass(frozen=True)
class OtherRank:
    """Another rank of the attempt, and a short reason why it ended."""

    rank: int
    node: str
    why: str


@dataclass(frozen=True)
class Cause:
    """`sentence`: what happened. `exception`: the error that the rank raised or that its log names.
    `message`: the more specific of both.

    `rank` is None if no rank is the cause (but a node, the environment, the time limit). `child`: the
    launcher's number for the process in that rank's log that failed first. `began`: the exception that led to
    `exception`. `kind`: of a known failure, else "". `at`: ISO time by the hub's clock. `is_certain` is False
    if no rank reported an error of its own and this one was only the first to lose the others."""

    sentence: str
    remedy: str
    rank: int | None = None
    local_rank: int | None = None
    node: str = ""
    role: str = ""
    child: int | None = None
    exception: str = ""
    began: str = ""
    kind: str = ""
    title: str = ""
    meaning: str = ""
    link: str = ""
    log: str = ""
    offset: int = 0
    quote: str = ""
    at: str | None = None
    is_certain: bool = True
    others: tuple[OtherRank, ...] = ()

    @property
    def message(self) -> str:
        return self.exception or self.title or self.sentence

    @property
    def line(self) -> str:
        """Returns the cause in one line, for lists and terminals."""
        if self.rank is None:
            text = f"{self.sentence} {self.title}.".removesuffix(" .")
        elif self.exception:
            text = f"Rank {self.rank} on {self.node}: {self.exception}"
        else:
            text = f"{self.sentence} {self.title}." if self.title else self.sentence
        flat = " ".join(text.split())
        return flat if len(flat) <= MAX_LINE_LENGTH else f"{flat[: MAX_LINE_LENGTH - 1]}…"

    def to_json(self) -> JsonObject:
        """Returns the cause as JSON, with `line` and `message` added so that lists can read them alone."""
        others = [dataclasses.asdict(other) for other in self.others]
        return {**dataclasses.asdict(self), "others": others, "line": self.line, "message": self.message}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Cause:
        # The stored JSON has derived values as well, and may come from a version with other fields.
        names = {spot.name for spot in dataclasses.fields(cls)}
        fields = {name: value for name, value in stored.items() if name in names}
        return cls(**{**fields, "others": tuple(OtherRank(**other) for other in stored.get("others", ()))})
