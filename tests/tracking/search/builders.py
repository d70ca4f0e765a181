"""Runs with what they have logged, as the tables keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jobs import tags as tagging
from jobs.models import Run
from tests.people import make_workspace
from tests.tracking.builders import logged_run
from tracking.models import Metric, Param
from tracking.search import find_runs


def run_with_data(
    name: str,
    *,
    metrics: Mapping[str, float] | None = None,
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    **fields: Any,
) -> Run:
    run = logged_run(name, **fields)
    for key, value in (metrics or {}).items():
        put_metric(run, key, value)
    for key, text in (params or {}).items():
        Param.objects.create(
            run=run, experiment=run.experiment, key=key, value=text, short=text[:200], number=number_of(text)
        )
    tagging.set_tags(run, tags or {})
    return run


def put_metric(
    run: Run, key: str, value: float, *, smallest: float | None = None, largest: float | None = None
) -> None:
    last = None if math.isnan(value) else value
    Metric.objects.create(
        run=run,
        experiment=run.experiment,
        key=key,
        count=1,
        last_value=last,
        min_value=last if smallest is None else smallest,
        max_value=last if largest is None else largest,
    )


def number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def found_names(text: str = "", *order_by: str, **params: Any) -> list[str]:
    """The names of the runs, in order."""
    arguments: dict[str, Any] = {"workspace": make_workspace(), "limit": 100} | params
    return [
        run.display_name
        for run in find_runs(arguments.pop("workspace"), text=text, order_by=order_by, **arguments).runs
    ]
