"""Narrows the table to the runs with a cell's value, by one more condition in the text of the filter."""

from __future__ import annotations

from dataclasses import dataclass

from tracking.history.table_query import TableQuery
from tracking.search import parse
from tracking.search.tree import And, Or


@dataclass(frozen=True)
class CellFilters:
    """`prefix` is the table's filter as it stands before one more condition; `conditions` are those that it
    has already."""

    table_query: TableQuery
    prefix: str
    conditions: frozenset[str]

    @classmethod
    def of(cls, table_query: TableQuery) -> CellFilters:
        """Raises FilterError."""
        tree = parse(table_query.filter)
        conditions = frozenset(str(part) for part in (tree.parts if isinstance(tree, And) else (tree,)))
        # AND binds closer than OR.
        text = f"({table_query.filter})" if isinstance(tree, Or) else table_query.filter
        return cls(table_query, f"{text} AND " if tree else "", conditions)

    def address(self, condition: str) -> str:
        """Returns the URL of the table with the condition."""
        if condition in self.conditions:
            return self.table_query.address()
        return self.table_query.address(filter=self.prefix + condition)

    def rest_of(self, condition: str, key: str) -> str:
        """Returns a condition on `key` without the key, which the column's head names; "" if the filter has
        the condition already."""
        return "" if condition in self.conditions else condition.removeprefix(f"{key} ")
