"""The tree of a filter; str() of a node is its text. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from tracking.search.vocabulary import ATTRIBUTES, AttributeType, KeyKind

Scalar = str | int | float | bool
ComparisonValue = Scalar | tuple[str, ...] | tuple[float, ...] | None
PLAIN = re.compile(r"[^\W\d]\w*(?:[./:-]\w+)*")


@dataclass(frozen=True)
class Key:
    """A key of a run. `part` of a metric is its last, min or max value."""

    kind: KeyKind
    name: str
    part: str = "last"

    @property
    def type(self) -> KeyKind | AttributeType:
        return ATTRIBUTES[self.name] if self.kind is KeyKind.ATTRIBUTE else self.kind

    def __str__(self) -> str:
        if self.kind is KeyKind.ATTRIBUTE:
            return self.name
        plain = PLAIN.fullmatch(self.name)
        named = (
            f"{self.kind.value}.{self.name}"
            if plain
            else f"{self.kind.value}.`{self.name.replace('`', '``')}`"
        )
        return named if self.part == "last" else f"{self.part}({named})"


@dataclass(frozen=True)
class Comparison:
    """One comparison. `value` is None for IS NULL and IS NOT NULL; `at` and `value_at` are offsets in the
    text."""

    key: Key
    operator: str
    value: ComparisonValue
    at: int = field(default=0, compare=False)
    value_at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.key} {self.operator}"
        return f"{self.key} {self.operator} {_spell(self.value)}"


@dataclass(frozen=True)
class Not:
    part: Node

    def __str__(self) -> str:
        return f"NOT {_parenthesized(self.part, (And, Or))}"


@dataclass(frozen=True)
class And:
    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " AND ".join(_parenthesized(part, (And, Or)) for part in self.parts)


@dataclass(frozen=True)
class Or:
    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " OR ".join(_parenthesized(part, (Or,)) for part in self.parts)


Node = Comparison | Not | And | Or


@dataclass(frozen=True)
class OrderBy:
    key: Key
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.key} {'DESC' if self.descending else 'ASC'}"


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _parenthesized(part: Node, wrapped: tuple[type, ...]) -> str:
    return f"({part})" if isinstance(part, wrapped) else str(part)


def _spell(value: Scalar | tuple[str, ...] | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_spell(item) for item in value)})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return repr(value)
