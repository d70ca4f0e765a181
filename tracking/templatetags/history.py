"""Template tags of the run table."""

from __future__ import annotations

from django import template

from tracking.history.table_query import TableQuery
from tracking.search.tree import Key
from tracking.search.vocabulary import KeyKind

register = template.Library()


@register.simple_tag
def key_text(kind: str, name: str, part: str = "last") -> str:
    """Returns the text of a key in filters and URLs."""
    return str(Key(KeyKind(kind), name, part))


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.simple_tag
def reset_columns(table_query: TableQuery) -> str:
    return table_query.address(columns=())


@register.simple_tag
def ungrouped(table_query: TableQuery) -> str:
    return table_query.address(groups=(), order=())
