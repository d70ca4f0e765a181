"""Files that are tables: CSV, TSV, and what MLflow's `log_table` writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST_ROWS = 200
MOST_COLUMNS = 60
LONGEST_CELL = 300
DELIMITERS = ",;\t|"
_SNIFFED = 10_000


@dataclass(frozen=True)
class Table:
    """`rows` are as long as `columns`. `is_cut`: there is more of it than is shown."""

    columns: list[str]
    rows: list[list[str]]
    is_cut: bool


def of_text(text: str, *, delimiter: str, is_cut: bool) -> Table | None:
    """The beginning of a CSV file, its first row the columns; None where it is none. `is_cut`: so is the
    text."""
    lines = text.splitlines(keepends=True)
    whole = lines[:-1] if is_cut and len(lines) > 1 else lines
    try:
        read = list(islice(csv.reader(whole, delimiter=delimiter), MOST_ROWS + 2))
    except csv.Error:
        return None
    read = [row for row in read if row]
    if not read:
        return None
    return _table(read[0], read[1:], is_cut=is_cut)


def delimiter_of(text: str) -> str:
    """What separates the columns of a .csv: mostly a comma, though not everywhere."""
    first = text[:_SNIFFED].splitlines()[:1]
    counts = {sign: first[0].count(sign) if first else 0 for sign in DELIMITERS}
    return max(counts, key=lambda sign: counts[sign]) if any(counts.values()) else ","


def of_json(told: Any) -> Table | None:
    """A table as MLflow keeps it: {"columns": [...], "data": [[...], ...]}."""
    if not isinstance(told, dict) or set(told) - {"columns", "data", "index"}:
        return None
    columns, rows = told.get("columns"), told.get("data")
    if (
        not isinstance(columns, list)
        or not isinstance(rows, list)
        or not all(isinstance(row, list) for row in rows)
    ):
        return None
    # One column more than is shown tells that the table is wider.
    shown = slice(MOST_COLUMNS + 1)
    cells = ([_cell(value) for value in row[shown]] for row in rows[: MOST_ROWS + 1])
    return _table([_cell(name) for name in columns[shown]], cells)


def sendable(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can spell and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_cut: bool = False) -> Table:
    found = list(rows)
    width = (
        min(max(len(columns), *(len(row) for row in found), 0), MOST_COLUMNS)
        if found
        else min(len(columns), MOST_COLUMNS)
    )
    shown = [_fitted(row, width) for row in found[:MOST_ROWS]]
    is_wide = len(columns) > MOST_COLUMNS or any(len(row) > MOST_COLUMNS for row in found)
    return Table(_fitted(columns, width), shown, is_cut or is_wide or len(found) > MOST_ROWS)


def _fitted(row: Sequence[str], width: int) -> list[str]:
    cut = [value if len(value) <= LONGEST_CELL else f"{value[:LONGEST_CELL]}…" for value in row[:width]]
    cells = [sendable(value) for value in cut]
    return cells + [""] * (width - len(cells))


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
