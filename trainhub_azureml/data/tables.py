"""Tables in files: how they are written, and pandas' data frames of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from trainhub_azureml.exceptions import UserErrorException

DELIMITED, PARQUET, JSON_LINES = "delimited", "parquet", "json_lines"


class TableFormat(NamedTuple):
    """`has_header`, `separator`, `encoding`, `is_typed` (whether numbers become numbers): of `delimited`."""

    kind: str = DELIMITED
    separator: str = ","
    has_header: bool = True
    encoding: str = "utf8"
    is_typed: bool = True

    def to_json(self) -> dict[str, Any]:
        """Returns what differs from the defaults."""
        defaults = TableFormat()._asdict()
        values = {key: value for key, value in self._asdict().items() if value != defaults[key]}
        return {"kind": self.kind, **values}

    @classmethod
    def from_text(cls, text: str) -> TableFormat:
        values = json.loads(text)
        return cls(**{key: value for key, value in values.items() if key in cls._fields})


def read_tables(table: TableFormat, paths: Sequence[str], limit: int | None = None) -> Any:
    """Returns a data frame of the rows of all files, at most `limit`. Raises UserErrorException without
    pandas."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError as error:
        raise UserErrorException(
            "to_pandas_dataframe needs pandas: add it to the environment of the run.", error
        ) from error
    frames: list[Any] = []
    rows = 0
    for path in paths:
        left = None if limit is None else limit - rows
        if left is not None and left <= 0:
            break
        frame = _read(pandas, table, path, left)
        rows += len(frame)
        frames.append(frame)
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


def _read(pandas: Any, table: TableFormat, path: str, limit: int | None) -> Any:
    if table.kind == PARQUET:
        frame = pandas.read_parquet(path)
        return frame if limit is None else frame.head(limit)
    if table.kind == JSON_LINES:
        return pandas.read_json(path, lines=True, nrows=limit)
    frame = pandas.read_csv(
        path,
        sep=table.separator,
        header=0 if table.has_header else None,
        encoding=table.encoding,
        dtype=None if table.is_typed else str,
        nrows=limit,
    )
    if not table.has_header:
        frame.columns = [f"Column{number}" for number in range(1, len(frame.columns) + 1)]
    return frame
