"""Copies the rows of a table in parts, each of which is written together with the record of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from psycopg import sql

from trainhub.database_move.column_types import Conversion, source_conversions
from trainhub.database_move.json_form import replace_nul, replace_refused_escapes
from trainhub.database_move.move_record import CopiedPart, MoveRecord
from trainhub.database_move.row_hash import RowHash
from trainhub.database_move.source import SourceDatabase
from trainhub.database_move.target import TargetDatabase, TargetTable

# An interruption costs at most a part; a row can have megabytes.
PART_ROWS, PART_BYTES = 50_000, 64 * 2**20
# Rows between two lines about the progress.
_STEP_ROWS = 500


class TableCopier:
    """Copies what follows `part` of a table; `advance` gets the number of rows of each step."""

    def __init__(
        self,
        source: SourceDatabase,
        table: TargetTable,
        part: CopiedPart,
        advance: Callable[[int], None],
        *,
        is_nul_replaced: bool,
    ) -> None:
        self._table, self._advance = table, advance
        self._replacements = _replacements(table) if is_nul_replaced else []
        self._hash = RowHash(source_conversions(table.columns), part.count, part.total)
        self._rows = source.rows(table.name, table.column_names, part.last_rowid)
        self._last, self._is_complete = part.last_rowid, False

    def copy(self, target: TargetDatabase, record: MoveRecord) -> None:
        while not self._is_complete:
            with target.connection.transaction():
                self._copy_part(target)
                total = self._hash
                saved = CopiedPart(self._last, total.count, total.total, self._is_complete)
                record.save_part(self._table.name, saved)

    def _copy_part(self, target: TargetDatabase) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, self._table.column_names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(self._table.name), names)
        count = size = 0
        with target.connection.cursor() as cursor, cursor.copy(statement) as copy:
            while count < PART_ROWS and size < PART_BYTES:
                step = 0
                for rowid, *values in islice(self._rows, _STEP_ROWS):
                    for at, replace in self._replacements:
                        if values[at] is not None:
                            values[at] = replace(values[at])
                    self._hash.add(values)
                    copy.write_row(values)
                    self._last = rowid
                    step += 1
                    size += sum(map(len, filter(_has_length, values)))
                    if size >= PART_BYTES:
                        break
                self._is_complete = not step
                if self._is_complete:
                    return
                count += step
                self._advance(step)


def _has_length(value: Any) -> bool:
    return isinstance(value, str | bytes)


def _replacements(table: TargetTable) -> list[tuple[int, Conversion]]:
    return [
        (at, replace_refused_escapes if column.is_json else replace_nul)
        for at, column in enumerate(table.columns)
        if column.is_json or column.is_text
    ]
