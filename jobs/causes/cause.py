"""The cause of a failed attempt as the hub stores it, the API returns it and pages show it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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
    if the rank only lost the others, or did not end as the error in its log ends a process. `ranks`: all that
    failed with the same error, if several did; `shared`: that error in words that hold for all of them."""

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
    ranks: tuple[int, ...] = ()
    shared: str = ""
    others: tuple[OtherRank, ...] = ()

    @property
    def where(self) -> str:
        """Returns the place of the failure, such as `Rank 1 on gpu-b`, "" if no rank is the cause. A process
        of torchrun has torchrun's number, which is the script's RANK."""
        if self.rank is None:
            return ""
        if self.ranks:
            return f"Ranks {format_ranks(self.ranks)}"
        if self.child is not None:
            return f"torchrun's rank {self.child} on {self.node}"
        return f"Rank {self.rank} on {self.node}"

    @property
    def message(self) -> str:
        return self.exception or self.title or self.sentence

    @property
    def line(self) -> str:
        """Returns the cause in one line, for lists and terminals."""
        if self.rank is None:
            text = f"{self.sentence} {self.title}.".removesuffix(" .")
        elif self.exception:
            where = self.where if self.is_certain else f"Perhaps {self.where[:1].lower()}{self.where[1:]}"
            text = f"{where}: {self.shared or self.exception}"
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
        others = tuple(OtherRank(**other) for other in stored.get("others", ()))
        return cls(**{**fields, "ranks": tuple(stored.get("ranks", ())), "others": others})


def format_ranks(ranks: Sequence[int]) -> str:
    """Formats ascending ranks: 0, 2, 3, 4 -> "0, 2–4"."""
    ranges: list[tuple[int, int]] = []
    for rank in ranks:
        if ranges and ranges[-1][1] + 1 == rank:
            ranges[-1] = (ranges[-1][0], rank)
        else:
            ranges.append((rank, rank))
    return ", ".join(_format_range(first, last) for first, last in ranges)


def _format_range(first: int, last: int) -> str:
    if last - first > 1:
        return f"{first}–{last}"
    return f"{first}" if first == last else f"{first}, {last}"
