"""Search for runs with filters: MLflow's grammar and extensions (docs/history.md).

`parse` turns text into a tree; `find_runs` returns the runs that match.
"""

from __future__ import annotations

from tracking.search.errors import FilterError
from tracking.search.parser import parse, parse_order
from tracking.search.run_search import (
    RunPage,
    RunQuery,
    build_query,
    count_runs,
    find_run_ids,
    find_runs,
    load_runs,
)

__all__ = [
    "FilterError",
    "RunPage",
    "RunQuery",
    "build_query",
    "count_runs",
    "find_run_ids",
    "find_runs",
    "load_runs",
    "parse",
    "parse_order",
]
