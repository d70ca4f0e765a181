"""Runs by a filter: MLflow's grammar, and more (docs/history.md).

`parse` text to a tree, `find` the runs it is true of.
"""

from __future__ import annotations

from tracking.search.errors import FilterError
from tracking.search.parser import parse, parse_order
from tracking.search.run_search import Asked, Found, asked, count, find, find_ids, loaded

__all__ = [
    "Asked",
    "FilterError",
    "Found",
    "asked",
    "count",
    "find",
    "find_ids",
    "loaded",
    "parse",
    "parse_order",
]
