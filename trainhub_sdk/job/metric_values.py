"""What scripts log, as numbers and texts: plain numbers, scalars of NumPy, tensors of one element, strings,
None. None of their libraries is imported."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Json = Union[None, bool, int, float, str]


def number_of(value: Any) -> float | None:
    """Returns a value as a number, None if it is none."""
    if isinstance(value, (str, bytes)) or value is None:
        return None
    if not isinstance(value, numbers.Real):
        try:
            value = value.item()
        except (AttributeError, TypeError, ValueError, RuntimeError):
            return None  # no scalar, or an array of several elements
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def json_of(value: Any) -> Json:
    """Returns a cell of a table."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    number = number_of(value)
    if number is None:
        return text_of(value)
    # JSON has no other numbers.
    return number if math.isfinite(number) else str(number)


def list_of(value: Any) -> list[Any]:
    """Returns a list, an array or whatever can be iterated as a list of scalars; a scalar is a list of
    one."""
    if isinstance(value, (str, bytes, Mapping)):
        return [value]
    if callable(getattr(value, "tolist", None)):
        value = value.tolist()
    return list(value) if isinstance(value, Iterable) else [value]


def rows_of(columns: Mapping[str, Any]) -> list[list[Json]]:
    """Returns the rows of a table given as columns; a scalar is a column of one row, and short columns end
    with None."""
    lists = [list_of(column) for column in columns.values()]
    height = max(map(len, lists), default=0)
    return [
        [json_of(column[index]) if index < len(column) else None for column in lists]
        for index in range(height)
    ]
