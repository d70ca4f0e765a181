"""Previews of tables: CSV, TSV, and the JSON of MLflow's `log_table`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

MAX_ROWS = 200
MAX_COLUMNS = 60
MAX_CELL_LENGTH = 300
DELIMITERS = ",;\t|"
_SNIFF_CHARACTERS = 10_000


@dataclass(frozen=True)
class PreviewTable:
    """The visible part of a table; every row is as long as `columns`. `is_cut` says that the table is
    larger."""

    columns: list[str]
    rows: list[list[str]]
    is_cut: bool


def parse_csv(text: str, *, delimiter: str, is_cut: bool) -> PreviewTable | None:
    """Returns the start of a CSV file with the first row as columns; None if it is not CSV. `is_cut` says
    that `text` is only a part of the file."""
    lines = text.splitlines(keepends=True)
    # The last line of a part may be incomplete.
    complete = lines[:-1] if is_cut and len(lines) > 1 else lines
    try:
        # The header, the visible rows, and one more row that shows whether there are others.
        records = list(islice(csv.reader(complete, delimiter=delimiter), MAX_ROWS + 2))
    except csv.Error:
        return None
    records = [row for row in records if row]
    if not records:
        return None
    return _table(records[0], records[1:], is_cut=is_cut)


def delimiter_of(text: str) -> str:
    """Returns the most frequent delimiter of the first line; a comma if there is none."""
    first = text[:_SNIFF_CHARACTERS].splitlines()[:1]
    counts = {sign: first[0].count(sign) if first else 0 for sign in DELIMITERS}
    return max(counts, key=lambda sign: counts[sign]) if any(counts.values()) else ","


def parse_json_table(content: object) -> PreviewTable | None:
    """Returns a table in MLflow's format, {"columns": [...], "data": [[...], ...]}; None for other JSON."""
    if not isinstance(content, dict) or set(content) - {"columns", "data", "index"}:
        return None
    columns, rows = content.get("columns"), content.get("data")
    if (
        not isinstance(columns, list)
        or not isinstance(rows, list)
        or not all(isinstance(row, list) for row in rows)
    ):
        return None
    # One extra column shows that the table is wider.
    visible = slice(MAX_COLUMNS + 1)
    cells = ([_cell(value) for value in row[visible]] for row in rows[: MAX_ROWS + 1])
    return _table([_cell(name) for name in columns[visible]], cells)


def encodable(text: str) -> str:
    """Replaces lone surrogates, which JSON can contain and UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_cut: bool = False) -> PreviewTable:
    all_rows = list(rows)
    width = (
        min(max(len(columns), *(len(row) for row in all_rows), 0), MAX_COLUMNS)
        if all_rows
        else min(len(columns), MAX_COLUMNS)
    )
    visible = [_fit(row, width) for row in all_rows[:MAX_ROWS]]
    is_wide = len(columns) > MAX_COLUMNS or any(len(row) > MAX_COLUMNS for row in all_rows)
    return PreviewTable(_fit(columns, width), visible, is_cut or is_wide or len(all_rows) > MAX_ROWS)


def _fit(row: Sequence[str], width: int) -> list[str]:
    shortened = [
        value if len(value) <= MAX_CELL_LENGTH else f"{value[:MAX_CELL_LENGTH]}…" for value in row[:width]
    ]
    cells = [encodable(value) for value in shortened]
    return cells + [""] * (width - len(cells))


def _cell(value: object) -> str:
    # An image that MLflow's `log_table` has saved as a file of the run.
    if isinstance(value, dict) and value.get("type") == "image" and isinstance(value.get("filepath"), str):
        return str(value["filepath"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
