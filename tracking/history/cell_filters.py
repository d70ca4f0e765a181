"""One click narrows the table by what a cell shows."""

from __future__ import annotations

from collections.abc import Callable

from tracking.history.table_query import Question
from tracking.search import parse
from tracking.search.tree import And, Or


def narrowing(question: Question) -> Callable[[str], str]:
    """For a filter the address of the table that is narrowed by it too. The text that somebody wrote stays as
    it is."""
    tree = parse(question.filter)
    known = {str(part) for part in (tree.parts if isinstance(tree, And) else (tree,))}
    before = (
        f"({question.filter}) AND " if isinstance(tree, Or) else f"{question.filter} AND " if tree else ""
    )

    def narrowed(meets: str) -> str:
        return question.address() if meets in known else question.address(filter=before + meets)

    return narrowed
