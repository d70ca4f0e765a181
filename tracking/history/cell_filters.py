"""Links that filter the table by the value of a cell."""

from __future__ import annotations

from collections.abc import Callable

from tracking.history.table_query import TableQuery
from tracking.search import parse
from tracking.search.tree import And, Or


def filter_link_builder(table_query: TableQuery) -> Callable[[str], str]:
    """Returns a function that returns the table's URL with one more condition, which is appended to the text
    of the filter."""
    tree = parse(table_query.filter)
    conditions = {str(part) for part in (tree.parts if isinstance(tree, And) else (tree,))}
    # AND binds closer than OR.
    prefix = (
        f"({table_query.filter}) AND "
        if isinstance(tree, Or)
        else f"{table_query.filter} AND "
        if tree
        else ""
    )

    def link_for(condition: str) -> str:
        return (
            table_query.address()
            if condition in conditions
            else table_query.address(filter=prefix + condition)
        )

    return link_for
