"""The types of PostgreSQL's columns that a hub uses: what SQLite may hold for each, and the form in which
rows of both are compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainhub.database_move.json_form import canonical_json

_LENGTH = re.compile(r"character varying\((\d+)\)|character\((\d+)\)")
_INTEGERS = {"smallint": 15, "integer": 31, "bigint": 63}
_TEXTS = ("text", "character varying", "character")
_PLAIN_TIME = 19  # characters of 2026-11-29 20:15:00
_WHOLE_TIME = 26  # with microseconds
_TIME = "[0-9][0-9][0-9][0-9]-[0-1][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9]*"  # a pattern of GLOB
Conversion = Callable[[Any], Any]


@dataclass(frozen=True)
class ColumnType:
    """`name`: of the type, as PostgreSQL writes it, such as "character varying(64)"."""

    column: str
    name: str

    @property
    def kind(self) -> str:
        return self.name.partition("(")[0]

    @property
    def is_text(self) -> bool:
        return self.kind in _TEXTS

    @property
    def is_json(self) -> bool:
        return self.kind == "jsonb"

    @property
    def is_supported(self) -> bool:
        return self.is_text or self.kind in (*_INTEGERS, *_CONDITIONS)

    def conditions(self, column: str) -> list[tuple[str, str]]:
        """Returns for each rule that PostgreSQL has and SQLite has not: what a value is that breaks it, and a
        condition in SQLite's SQL for values that are not NULL. `column`: quoted."""
        if self.is_text:
            length = _LENGTH.match(self.name)
            most = int(length[1] or length[2]) if length else 0
            return [
                ("is no text", f"typeof({column}) IN ('blob', 'real')"),
                (NUL, f"instr(CAST({column} AS BLOB), x'00')"),
                *([(f"is longer than {most} characters", f"length({column}) > {most}")] if most else []),
            ]
        if self.kind in _INTEGERS:
            most = 2 ** _INTEGERS[self.kind]
            rule = f"typeof({column}) <> 'integer' OR {column} >= {most} OR {column} < -{most}"
            if self.kind == "bigint":
                rule = f"typeof({column}) <> 'integer'"
            return [(f"is no whole number of {_INTEGERS[self.kind] + 1} bits", rule)]
        return [(reason, rule.format(column=column)) for reason, rule in _CONDITIONS[self.kind]]

    @property
    def wire_type(self) -> str:
        """The type of `expression` in PostgreSQL's binary format."""
        return _WIRE_TYPES.get(self.kind, "text")

    def expression(self, column: str) -> str:
        """Returns PostgreSQL's SQL for the value in the form in which it is compared. `column`: quoted."""
        return _EXPRESSIONS.get(self.kind, "{column}").format(column=column)


def source_conversions(columns: Sequence[ColumnType]) -> list[tuple[int, Conversion]]:
    """Returns what has to be done with values of SQLite before they are compared, by position."""
    return [(at, _OF_SOURCE[column.kind]) for at, column in enumerate(columns) if column.kind in _OF_SOURCE]


def target_conversions(columns: Sequence[ColumnType]) -> list[tuple[int, Conversion]]:
    """The same for the values of PostgreSQL's `expression`."""
    return [(at, canonical_json) for at, column in enumerate(columns) if column.is_json]


def _canonical_time(text: str) -> str:
    """Returns a time as PostgreSQL's expression writes it: UTC, with six digits of microseconds."""
    if len(text) == _WHOLE_TIME and text[10] == " ":
        return text
    if len(text) == _PLAIN_TIME and text[10] == " ":
        return f"{text}.000000"
    time = datetime.fromisoformat(text)
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"


def _canonical_uuid(text: str) -> str:
    return text.replace("-", "").lower()


NUL = "has a NUL character"
JSON_NUL = "has an escaped NUL character or half of a surrogate pair"
_CONDITIONS: dict[str, list[tuple[str, str]]] = {
    "boolean": [("is neither true nor false", "{column} NOT IN (0, 1)")],
    "double precision": [("is no number", "typeof({column}) NOT IN ('real', 'integer')")],
    "timestamp with time zone": [
        ("is no time", f"typeof({{column}}) <> 'text' OR {{column}} NOT GLOB '{_TIME}'")
    ],
    "date": [("is no date", "date({column}) IS NULL OR length({column}) <> 10")],
    "bytea": [("is no binary value", "typeof({column}) <> 'blob'")],
    "jsonb": [
        ("is no JSON", "NOT json_valid({column})"),
        # An emoji is two such escapes: which of these values PostgreSQL refuses is seen in Python.
        (JSON_NUL, "instr({column}, '\\u0000') OR instr(lower({column}), '\\ud')"),
    ],
    "inet": [("is no address", "typeof({column}) <> 'text'")],
    "uuid": [("is no UUID", "length(replace({column}, '-', '')) <> 32")],
}
_EXPRESSIONS = {
    "boolean": "{column}::int",
    "timestamp with time zone": "to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
    "date": "{column}::text",
    "jsonb": "{column}::text",
    "inet": "host({column})",
    "uuid": "replace({column}::text, '-', '')",
}
_WIRE_TYPES = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "double precision": "float8",
    "bytea": "bytea",
    "boolean": "int4",
}
_OF_SOURCE: dict[str, Conversion] = {
    "timestamp with time zone": _canonical_time,
    "jsonb": canonical_json,
    "double precision": float,
    "uuid": _canonical_uuid,
}
